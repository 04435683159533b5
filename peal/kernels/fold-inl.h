// The loops, for any form of element and any operator (forms-inl.h). The sources of this folder
// include this file once for every instruction set.

// Highway toggles this guard, so that the file is compiled once for each instruction set.
#if defined(PEAL_KERNELS_FOLD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PEAL_KERNELS_FOLD_INL_H_
#undef PEAL_KERNELS_FOLD_INL_H_
#else
#define PEAL_KERNELS_FOLD_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "peal/kernels/fold.h"
#include "peal/kernels/forms-inl.h"

HWY_BEFORE_NAMESPACE();
namespace peal::kernels::HWY_NAMESPACE {

/// Any number of pointers, in the caller's array, and the offset of the data behind them.
template <class P>
struct Many {
  P const* pointers;
  std::size_t count;
  std::size_t offset;
  std::size_t size() const { return count; }
  P operator[](std::size_t i) const { return pointers[i] + offset; }
};

/// A number of pointers that is known at compile time, so the pointers stay in registers.
template <class P, std::size_t kCount>
struct Few {
  P pointers[kCount];
  static constexpr std::size_t size() { return kCount; }
  P operator[](std::size_t i) const { return pointers[i]; }
};

/// Whether inputs are multiplied by weights, one weight for each input.
enum class Weighing : unsigned char { kNone, kEach };

/// `first` makes the first value from input 0; `next` combines a value with input i.
struct NoWeights {
  template <class Form>
  HWY_INLINE typename Form::Acc first(typename Form::Acc loaded) const {
    return loaded;
  }
  template <class Form, class Op>
  HWY_INLINE typename Form::Acc next(typename Form::Acc acc,
                                     typename Form::Acc loaded,
                                     std::size_t) const {
    return combine<Op>(acc, loaded);
  }
};

/// Weights for sums. `Numbers` is a pointer, or an array whose values are loaded into registers
/// once.
template <class Numbers>
struct EachWeight {
  Numbers numbers;
  template <class Form>
  HWY_INLINE typename Form::Acc first(typename Form::Acc loaded) const {
    return combine<Product>(loaded, Form::set(numbers[0]));
  }
  template <class Form, class Op>
  HWY_INLINE typename Form::Acc next(typename Form::Acc acc,
                                     typename Form::Acc loaded,
                                     std::size_t i) const {
    return weighted_sum(acc, loaded, Form::set(numbers[i]));
  }
};

template <std::size_t kCount>
struct FewNumbers {
  double numbers[kCount];
  double operator[](std::size_t i) const { return numbers[i]; }
};

template <Weighing kWeighing>
HWY_INLINE auto many_weights(const Fold& fold) {
  if constexpr (kWeighing == Weighing::kEach) {
    return EachWeight<const double*>{fold.weights};
  } else {
    return NoWeights();
  }
}

template <Weighing kWeighing, std::size_t kCount>
HWY_INLINE auto few_weights(const Fold& fold) {
  if constexpr (kWeighing == Weighing::kEach) {
    EachWeight<FewNumbers<kCount>> few;
    for (std::size_t i = 0; i < kCount; ++i) few.numbers.numbers[i] = fold.weights[i];
    return few;
  } else {
    return NoWeights();
  }
}

inline Many<const std::byte*> inputs_of(const Fold& fold, std::size_t from = 0) {
  return {fold.inputs, fold.input_count, from};
}
inline Many<std::byte*> outputs_of(const Fold& fold, std::size_t from = 0) {
  return {fold.outputs, fold.output_count, from};
}

template <class Form>
HWY_INLINE void apply_last(typename Form::Acc& acc, Last last) {
  if constexpr (Form::kHasLast) {
    if (last.kind == Last::Kind::kDivide) acc = combine<Quotient>(acc, Form::set(last.operand));
    if (last.kind == Last::Kind::kMultiply) acc = combine<Product>(acc, Form::set(last.operand));
  }
}

/// Checks several registers for NaNs at once, because NaNs are rare.
template <class Form, std::size_t kAccs>
HWY_INLINE void apply_last(typename Form::Acc (&acc)[kAccs], Last last) {
  HWY_UNROLL(4)
  for (std::size_t j = 0; j < kAccs; ++j) apply_last<Form>(acc[j], last);
  if constexpr (Form::kHasLast) {
    if constexpr (kAccs > 1) {
      auto all = acc[0];
      HWY_UNROLL(4)
      for (std::size_t j = 1; j < kAccs; ++j) all = mixed(all, acc[j]);
      if (HWY_LIKELY(!has_nan(all))) return;
    }
    HWY_UNROLL(4)
    for (std::size_t j = 0; j < kAccs; ++j) acc[j] = with_canonical_nan(acc[j]);
  }
}

/// Reduces kAccs registers of elements from `at` on. Each input is read once, and every output is
/// written while the elements are in registers.
template <class Form,
          class Op,
          std::size_t kAccs,
          class Inputs,
          class Outputs,
          class Weights,
          class How>
HWY_INLINE void fold_at(std::size_t at,
                        const Inputs& in,
                        const Outputs& out,
                        const Weights& weights,
                        Last last,
                        How how) {
  typename Form::Acc acc[kAccs];
  HWY_UNROLL(4)
  for (std::size_t j = 0; j < kAccs; ++j) {
    acc[j] = weights.template first<Form>(Form::load(in[0] + at + j * Form::kBytes));
  }
  for (std::size_t i = 1; i < in.size(); ++i) {
    HWY_UNROLL(4)
    for (std::size_t j = 0; j < kAccs; ++j) {
      const auto loaded = Form::load(in[i] + at + j * Form::kBytes);
      acc[j] = weights.template next<Form, Op>(acc[j], loaded, i);
    }
  }
  apply_last<Form>(acc, last);
  for (std::size_t i = 0; i < out.size(); ++i) {
    HWY_UNROLL(4)
    for (std::size_t j = 0; j < kAccs; ++j) {
      Form::store(acc[j], out[i] + at + j * Form::kBytes, how);
    }
  }
}

/// Reduces the rest that does not fill a register, by halves. Small reductions consist mostly of
/// this rest. A load of a whole vector right after its pieces were stored would stall.
template <class Form, class Op, class Inputs, class Outputs, class Weights>
HWY_INLINE void fold_rest(std::size_t at,
                          const Inputs& in,
                          const Outputs& out,
                          const Weights& weights,
                          std::size_t bytes,
                          Last last) {
  if constexpr (Form::kBytes > Form::kElement) {
    using Half = typename Form::Narrower;
    if ((bytes & Half::kBytes) != 0) {
      fold_at<Half, Op, 1>(at, in, out, weights, last, Cached());
      at += Half::kBytes;
    }
    fold_rest<Half, Op>(at, in, out, weights, bytes, last);
  }
}

/// For few inputs: reads them side by side.
template <class Form, class Op, class Inputs, class Outputs, class Weights>
HWY_INLINE void fold_all(
    const Inputs& in, const Outputs& out, const Weights& weights, std::size_t bytes, Last last) {
  constexpr std::size_t kAccs = 4;
  std::size_t at = 0;
  for (; bytes - at >= kAccs * Form::kBytes; at += kAccs * Form::kBytes) {
    fold_at<Form, Op, kAccs>(at, in, out, weights, last, Cached());
  }
  for (; bytes - at >= Form::kBytes; at += Form::kBytes) {
    fold_at<Form, Op, 1>(at, in, out, weights, last, Cached());
  }
  if (at < bytes) fold_rest<Form, Op>(at, in, out, weights, bytes - at, last);
}

// Each of these is a function of its own, so that a small reduction does not pay for the registers
// and the stack of others.

template <class Form, class Op, Weighing kWeighing, std::size_t kInputs, std::size_t kOutputs>
HWY_NOINLINE void fold_few(const Fold& fold) {
  Few<const std::byte*, kInputs> in;
  Few<std::byte*, kOutputs> out;
  for (std::size_t i = 0; i < kInputs; ++i) in.pointers[i] = fold.inputs[i];
  for (std::size_t i = 0; i < kOutputs; ++i) out.pointers[i] = fold.outputs[i];
  fold_all<Form, Op>(in, out, few_weights<kWeighing, kInputs>(fold), fold.bytes, fold.last);
}

/// Reduces `bytes` bytes of `fold`, beginning at `from`.
template <class Form, class Op, Weighing kWeighing>
HWY_NOINLINE void fold_many(const Fold& fold, std::size_t from, std::size_t bytes) {
  fold_all<Form, Op>(inputs_of(fold, from),
                     outputs_of(fold, from),
                     many_weights<kWeighing>(fold),
                     bytes,
                     fold.last);
}

/// Writes past the caches, except before the first whole line of the outputs and after the last.
template <class Form, class Op, Weighing kWeighing>
HWY_NOINLINE void fold_streaming(const Fold& fold) {
  constexpr std::size_t kStep = HWY_MAX(4 * Form::kBytes, kLine);
  const auto in = inputs_of(fold);
  const auto out = outputs_of(fold);
  const auto weights = many_weights<kWeighing>(fold);
  const std::size_t to_line = (0 - reinterpret_cast<std::uintptr_t>(out[0])) % kLine;
  std::size_t at = HWY_MIN(fold.bytes, to_line);
  fold_many<Form, Op, kWeighing>(fold, 0, at);
  for (; fold.bytes - at >= kStep; at += kStep) {
    fold_at<Form, Op, kStep / Form::kBytes>(at, in, out, weights, fold.last, Streamed());
  }
  fold_many<Form, Op, kWeighing>(fold, at, fold.bytes - at);
}

/// block[j] = block[j] op in[first][j] op ... op in[end - 1][j]
template <class Form, class Op, class Inputs, class Weights>
HWY_INLINE void fold_group(typename Form::Acc* block,
                           std::size_t accs,
                           const Inputs& in,
                           const Weights& weights,
                           std::size_t first,
                           std::size_t end,
                           std::size_t at) {
  for (std::size_t j = 0; j < accs; ++j) {
    auto acc = block[j];
    for (std::size_t i = first; i < end; ++i) {
      const auto loaded = Form::load(in[i] + at + j * Form::kBytes);
      acc = weights.template next<Form, Op>(acc, loaded, i);
    }
    block[j] = acc;
  }
}

/// For many inputs, where reading all side by side takes longer (twice the time for 32 of 1 MiB):
/// reads a few at a time, and adds them to a block of accumulators that stays in the cache.
template <class Form, class Op, Weighing kWeighing>
HWY_NOINLINE void fold_in_blocks(const Fold& fold) {
  constexpr std::size_t kGroup = 8;
  constexpr std::size_t kBlock = 16384 / sizeof(typename Form::Acc);
  typename Form::Acc block[kBlock];
  const auto in = inputs_of(fold);
  const auto out = outputs_of(fold);
  const auto weights = many_weights<kWeighing>(fold);
  std::size_t at = 0;
  while (fold.bytes - at >= Form::kBytes) {
    const std::size_t accs = HWY_MIN(kBlock, (fold.bytes - at) / Form::kBytes);
    for (std::size_t j = 0; j < accs; ++j) {
      block[j] = weights.template first<Form>(Form::load(in[0] + at + j * Form::kBytes));
    }
    for (std::size_t first = 1; first < in.size(); first += kGroup) {
      const std::size_t end = HWY_MIN(first + kGroup, in.size());
      fold_group<Form, Op>(block, accs, in, weights, first, end, at);
    }
    for (std::size_t j = 0; j < accs; ++j) {
      apply_last<Form>(block[j], fold.last);
      if constexpr (Form::kHasLast) block[j] = with_canonical_nan(block[j]);
    }
    for (std::size_t k = 0; k < out.size(); ++k) {
      for (std::size_t j = 0; j < accs; ++j) {
        Form::store(block[j], out[k] + at + j * Form::kBytes, Cached());
      }
    }
    at += accs * Form::kBytes;
  }
  fold_rest<Form, Op>(at, in, out, weights, fold.bytes - at, fold.last);
}

/// Runs the whole `fold`. Most algorithms reduce two inputs, so two inputs have their own loops.
template <class Form, class Op, Weighing kWeighing = Weighing::kNone>
void run(const Fold& fold) {
  constexpr std::size_t kSideBySide = 16;
  if (fold.input_count > kSideBySide) return fold_in_blocks<Form, Op, kWeighing>(fold);
  if (fold.stores == Stores::kStreaming) return fold_streaming<Form, Op, kWeighing>(fold);
  if (fold.input_count == 2 && fold.output_count == 1) {
    return fold_few<Form, Op, kWeighing, 2, 1>(fold);
  }
  if (fold.input_count == 2 && fold.output_count == 2) {
    return fold_few<Form, Op, kWeighing, 2, 2>(fold);
  }
  return fold_many<Form, Op, kWeighing>(fold, 0, fold.bytes);
}

/// The loops for floating types. avg and premul_sum add.
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
