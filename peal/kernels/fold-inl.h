// The loops, over any form of element and any operator. Included by the sources of this folder,
// once for every instruction set.
//
// A Form says how elements lie in memory and in registers:
//   Acc                  the registers that hold kBytes bytes of elements while they are reduced
//   kBytes
//   Acc load(p, amount)          from any address
//   void store(acc, p, amount)   to any address; `amount` is Whole or Part
//   kHasLast            whether Last applies; then also
//   Acc set(value)       every lane the same
// An operator is a struct with `apply(a, b)` on vectors.

// Toggled by Highway, so that each instruction set sees the file once.
#if defined(PEAL_KERNELS_FOLD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PEAL_KERNELS_FOLD_INL_H_
#undef PEAL_KERNELS_FOLD_INL_H_
#else
#define PEAL_KERNELS_FOLD_INL_H_
#endif

#include <cstddef>
#include <cstring>

#include <hwy/highway.h>

#include "peal/kernels/fold.h"

HWY_BEFORE_NAMESPACE();
namespace peal::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// ---- Memory at any address

/// How much of a register is meant: all of it, or only its first bytes, at the end of the memory.
struct Whole {};
struct Part {
  std::size_t bytes;
};

template <class D>
HWY_INLINE hn::VFromD<D> load_vector(D d, const std::byte* from, Whole) {
  using T = hn::TFromD<D>;
#if HWY_TARGET == HWY_SCALAR
  T value;
  std::memcpy(&value, from, sizeof(T));
  return hn::Set(d, value);
#else
  return hn::LoadU(d, reinterpret_cast<const T*>(from));
#endif
}

template <class D>
HWY_INLINE void store_vector(D d, hn::VFromD<D> v, std::byte* to, Whole) {
  using T = hn::TFromD<D>;
#if HWY_TARGET == HWY_SCALAR
  const T value = hn::GetLane(v);
  std::memcpy(to, &value, sizeof(T));
  (void)d;
#else
  hn::StoreU(v, d, reinterpret_cast<T*>(to));
#endif
}

#if HWY_TARGET <= HWY_AVX3  // the better the target, the lower its number

/// By masks, since a tiny reduction is little else. The rest of the register is zero.
template <class D>
HWY_INLINE hn::VFromD<D> load_vector(D d, const std::byte* from, Part part) {
  const hn::Repartition<std::uint8_t, D> d8;
  const auto mask = hn::FirstN(d8, part.bytes);
  return hn::BitCast(d, hn::MaskedLoad(mask, d8, reinterpret_cast<const std::uint8_t*>(from)));
}

template <class D>
HWY_INLINE void store_vector(D d, hn::VFromD<D> v, std::byte* to, Part part) {
  const hn::Repartition<std::uint8_t, D> d8;
  const auto mask = hn::FirstN(d8, part.bytes);
  hn::BlendedStore(hn::BitCast(d8, v), mask, d8, reinterpret_cast<std::uint8_t*>(to));
}

#else

/// By way of a register's worth of zeros: not all targets have masks that spare the bytes behind.
template <class D>
HWY_INLINE hn::VFromD<D> load_vector(D d, const std::byte* from, Part part) {
  std::byte buffer[hn::MaxLanes(D()) * sizeof(hn::TFromD<D>)] = {};
  std::memcpy(buffer, from, part.bytes);
  return load_vector(d, buffer, Whole());
}

template <class D>
HWY_INLINE void store_vector(D d, hn::VFromD<D> v, std::byte* to, Part part) {
  std::byte buffer[hn::MaxLanes(D()) * sizeof(hn::TFromD<D>)];
  store_vector(d, v, buffer, Whole());
  std::memcpy(to, buffer, part.bytes);
}

#endif

// ---- Forms

/// Elements that are reduced as they lie in memory.
template <class T>
struct Plain {
  using D = hn::ScalableTag<T>;
  using Acc = hn::VFromD<D>;
  static constexpr std::size_t kBytes = hn::MaxLanes(D()) * sizeof(T);
  static constexpr bool kHasLast = hwy::IsFloat<T>();
  template <class Amount>
  static HWY_INLINE Acc load(const std::byte* from, Amount amount) {
    return load_vector(D(), from, amount);
  }
  template <class Amount>
  static HWY_INLINE void store(Acc acc, std::byte* to, Amount amount) {
    store_vector(D(), acc, to, amount);
  }
  static HWY_INLINE Acc set(double value) { return hn::Set(D(), static_cast<T>(value)); }
};

/// Elements that take two vectors. Which lane is in which is the form's matter.
template <class V>
struct Pair {
  V first;
  V second;
};

// ---- Operators

struct Sum {
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    return hn::Add(a, b);
  }
};

struct Product {
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    return hn::Mul(a, b);
  }
};

struct Quotient {
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    return hn::Div(a, b);
  }
};

/// Of floats: NaN if either is; the first of two that compare equal, so that the sign of zero does
/// not depend on the CPU's own minimum.
struct Min {
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    if constexpr (hwy::IsFloat<hn::TFromV<V>>()) {
      return hn::IfThenElse(hn::Or(hn::Lt(b, a), hn::IsNaN(b)), b, a);
    } else {
      return hn::Min(a, b);
    }
  }
};

struct Max {
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    if constexpr (hwy::IsFloat<hn::TFromV<V>>()) {
      return hn::IfThenElse(hn::Or(hn::Gt(b, a), hn::IsNaN(b)), b, a);
    } else {
      return hn::Max(a, b);
    }
  }
};

template <class Op, class V>
HWY_INLINE V combine(V a, V b) {
  return Op::apply(a, b);
}
template <class Op, class V>
HWY_INLINE Pair<V> combine(Pair<V> a, Pair<V> b) {
  return {Op::apply(a.first, b.first), Op::apply(a.second, b.second)};
}

// ---- Loops

/// As many pointers as the caller has.
template <class P>
struct Many {
  P const* pointers;
  std::size_t count;
  std::size_t size() const { return count; }
  P operator[](std::size_t i) const { return pointers[i]; }
};

/// A number that is known when compiling: the pointers stay in registers.
template <class P, std::size_t kCount>
struct Few {
  P pointers[kCount];
  static constexpr std::size_t size() { return kCount; }
  P operator[](std::size_t i) const { return pointers[i]; }
};

template <class Form>
HWY_INLINE void apply_last(typename Form::Acc& acc, Last last) {
  if constexpr (Form::kHasLast) {
    if (last.kind == Last::Kind::kDivide) acc = combine<Quotient>(acc, Form::set(last.operand));
    if (last.kind == Last::Kind::kMultiply) acc = combine<Product>(acc, Form::set(last.operand));
  }
}

/// kAccs registers' worth of elements from `at` on: each input is read once, and every output
/// written, while they stay in registers.
template <class Form, class Op, std::size_t kAccs, class Inputs, class Outputs, class Amount>
HWY_INLINE void fold_at(
    std::size_t at, const Inputs& in, const Outputs& out, Amount amount, Last last) {
  typename Form::Acc acc[kAccs];
  HWY_UNROLL(4)
  for (std::size_t j = 0; j < kAccs; ++j) {
    acc[j] = Form::load(in[0] + at + j * Form::kBytes, amount);
  }
  for (std::size_t i = 1; i < in.size(); ++i) {
    HWY_UNROLL(4)
    for (std::size_t j = 0; j < kAccs; ++j) {
      const auto next = Form::load(in[i] + at + j * Form::kBytes, amount);
      acc[j] = combine<Op>(acc[j], next);
    }
  }
  HWY_UNROLL(4)
  for (std::size_t j = 0; j < kAccs; ++j) apply_last<Form>(acc[j], last);
  for (std::size_t i = 0; i < out.size(); ++i) {
    HWY_UNROLL(4)
    for (std::size_t j = 0; j < kAccs; ++j) {
      Form::store(acc[j], out[i] + at + j * Form::kBytes, amount);
    }
  }
}

template <class Form, class Op, class Inputs, class Outputs>
void fold_all(const Inputs in, const Outputs out, std::size_t bytes, Last last) {
  constexpr std::size_t kAccs = 4;
  std::size_t at = 0;
  for (; bytes - at >= kAccs * Form::kBytes; at += kAccs * Form::kBytes) {
    fold_at<Form, Op, kAccs>(at, in, out, Whole(), last);
  }
  for (; bytes - at >= Form::kBytes; at += Form::kBytes) {
    fold_at<Form, Op, 1>(at, in, out, Whole(), last);
  }
  if (at < bytes) fold_at<Form, Op, 1>(at, in, out, Part{bytes - at}, last);
}

/// For so many inputs that reading them side by side costs more than it saves (twice the time for
/// 32 of 1 MiB): a few at a time, added to a block of accumulators that stays in the cache.
template <class Form, class Op>
void fold_in_blocks(const Many<const std::byte*> in,
                    const Many<std::byte*> out,
                    std::size_t bytes,
                    Last last) {
  using Acc = typename Form::Acc;
  constexpr std::size_t kGroup = 8;
  constexpr std::size_t kBlock = 16384 / sizeof(Acc);
  Acc block[kBlock];
  std::size_t at = 0;
  while (bytes - at >= Form::kBytes) {
    const std::size_t accs = HWY_MIN(kBlock, (bytes - at) / Form::kBytes);
    for (std::size_t j = 0; j < accs; ++j)
      block[j] = Form::load(in[0] + at + j * Form::kBytes, Whole());
    for (std::size_t first = 1; first < in.size(); first += kGroup) {
      const std::size_t end = HWY_MIN(first + kGroup, in.size());
      for (std::size_t j = 0; j < accs; ++j) {
        Acc acc = block[j];
        for (std::size_t i = first; i < end; ++i) {
          acc = combine<Op>(acc, Form::load(in[i] + at + j * Form::kBytes, Whole()));
        }
        block[j] = acc;
      }
    }
    for (std::size_t j = 0; j < accs; ++j) apply_last<Form>(block[j], last);
    for (std::size_t k = 0; k < out.size(); ++k) {
      for (std::size_t j = 0; j < accs; ++j)
        Form::store(block[j], out[k] + at + j * Form::kBytes, Whole());
    }
    at += accs * Form::kBytes;
  }
  if (at < bytes) fold_at<Form, Op, 1>(at, in, out, Part{bytes - at}, last);
}

/// The whole of `fold`. Two inputs to one output is what most algorithms do, so it has its own
/// loop.
template <class Form, class Op>
void run(const Fold& fold) {
  constexpr std::size_t kSideBySide = 16;
  const Many<const std::byte*> in{fold.inputs, fold.input_count};
  const Many<std::byte*> out{fold.outputs, fold.output_count};
  if (in.size() == 2 && out.size() == 1) {
    fold_all<Form, Op>(Few<const std::byte*, 2>{{in[0], in[1]}},
                       Few<std::byte*, 1>{{out[0]}},
                       fold.bytes,
                       fold.last);
  } else if (in.size() <= kSideBySide) {
    fold_all<Form, Op>(in, out, fold.bytes, fold.last);
  } else {
    fold_in_blocks<Form, Op>(in, out, fold.bytes, fold.last);
  }
}

/// The operators that floats have. avg and premul_sum add.
template <class Form>
void run_floats(const Fold& fold, ReduceOp::Kind op) {
  switch (op) {
    case ReduceOp::Kind::kProduct:
      return run<Form, Product>(fold);
    case ReduceOp::Kind::kMin:
      return run<Form, Min>(fold);
    case ReduceOp::Kind::kMax:
      return run<Form, Max>(fold);
    case ReduceOp::Kind::kSum:
    case ReduceOp::Kind::kAvg:
    case ReduceOp::Kind::kPremulSum:
      return run<Form, Sum>(fold);
    case ReduceOp::Kind::kBand:
    case ReduceOp::Kind::kBor:
    case ReduceOp::Kind::kBxor:
      return;
  }
}

}  // namespace peal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
