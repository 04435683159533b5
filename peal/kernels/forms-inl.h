// How elements lie in memory and in registers, and the operators on registers. Included by the
// loops, once for every instruction set.
//
// A Form is a struct of
//   Acc                          the registers that elements are in while they are reduced
//   kBytes                       what they take in memory
//   Acc load(p, amount)          from any address; `amount` is Whole or Part
//   void store(acc, p, amount)   to any address
//   kHasLast                     whether Last applies (fold.h); then also
//   Acc set(value)               every lane the same
// An operator is a struct with `apply(a, b)` on vectors.

// Toggled by Highway, so that each instruction set sees the file once.
#if defined(PEAL_KERNELS_FORMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PEAL_KERNELS_FORMS_INL_H_
#undef PEAL_KERNELS_FORMS_INL_H_
#else
#define PEAL_KERNELS_FORMS_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <hwy/highway.h>

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

}  // namespace peal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
