// The loops, over any form of element and any operator (forms-inl.h). Included by the sources of
// this folder, once for every instruction set.

// Toggled by Highway, so that each instruction set sees the file once.
#if defined(PEAL_KERNELS_FOLD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PEAL_KERNELS_FOLD_INL_H_
#undef PEAL_KERNELS_FOLD_INL_H_
#else
#define PEAL_KERNELS_FOLD_INL_H_
#endif

#include <cstddef>

#include "peal/kernels/fold.h"
#include "peal/kernels/forms-inl.h"

HWY_BEFORE_NAMESPACE();
namespace peal::kernels::HWY_NAMESPACE {

/// As many pointers as the caller has, and how far behind them the data is.
template <class P>
struct Many {
  P const* pointers;
  std::size_t count;
  std::size_t offset;
  std::size_t size() const { return count; }
  P operator[](std::size_t i) const { return pointers[i] + offset; }
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

/// Few enough inputs to read side by side.
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

/// block[j] = block[j] op in[first][j] op ... op in[end - 1][j]
template <class Form, class Op, class Inputs>
HWY_INLINE void fold_group(typename Form::Acc* block,
                           std::size_t accs,
                           const Inputs& in,
                           std::size_t first,
                           std::size_t end,
                           std::size_t at) {
  for (std::size_t j = 0; j < accs; ++j) {
    auto acc = block[j];
    for (std::size_t i = first; i < end; ++i) {
      acc = combine<Op>(acc, Form::load(in[i] + at + j * Form::kBytes, Whole()));
    }
    block[j] = acc;
  }
}

/// For so many inputs that reading them side by side costs more than it saves (twice the time for
/// 32 of 1 MiB): a few at a time, added to a block of accumulators that stays in the cache.
template <class Form, class Op, class Inputs, class Outputs>
void fold_in_blocks(const Inputs in, const Outputs out, std::size_t bytes, Last last) {
  constexpr std::size_t kGroup = 8;
  constexpr std::size_t kBlock = 16384 / sizeof(typename Form::Acc);
  typename Form::Acc block[kBlock];
  std::size_t at = 0;
  while (bytes - at >= Form::kBytes) {
    const std::size_t accs = HWY_MIN(kBlock, (bytes - at) / Form::kBytes);
    for (std::size_t j = 0; j < accs; ++j) {
      block[j] = Form::load(in[0] + at + j * Form::kBytes, Whole());
    }
    for (std::size_t first = 1; first < in.size(); first += kGroup) {
      fold_group<Form, Op>(block, accs, in, first, HWY_MIN(first + kGroup, in.size()), at);
    }
    for (std::size_t j = 0; j < accs; ++j) apply_last<Form>(block[j], last);
    for (std::size_t k = 0; k < out.size(); ++k) {
      for (std::size_t j = 0; j < accs; ++j) {
        Form::store(block[j], out[k] + at + j * Form::kBytes, Whole());
      }
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
  const Many<const std::byte*> in{fold.inputs, fold.input_count, fold.offset};
  const Many<std::byte*> out{fold.outputs, fold.output_count, 0};
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

/// The loops for the operators that floats have. avg and premul_sum add.
template <class Form>
Loop fractions(ReduceOp::Kind op) {
  if (op == ReduceOp::Kind::kProduct) return run<Form, Product>;
  if (op == ReduceOp::Kind::kMin) return run<Form, Min>;
  if (op == ReduceOp::Kind::kMax) return run<Form, Max>;
  return run<Form, Sum>;
}

}  // namespace peal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
