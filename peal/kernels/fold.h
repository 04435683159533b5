// What kernels.cpp hands to the loops: plain pointers and sizes, since code that is compiled for
// several instruction sets must not instantiate templates that others share.
#pragma once

#include <cstddef>

#include "peal/base/dtype.h"
#include "peal/base/reduce_op.h"

namespace peal::kernels {

/// What happens to a completed value, once, before it is rounded to its type.
struct Last {
  enum class Kind : unsigned char { kNothing, kDivide, kMultiply };
  Kind kind = Kind::kNothing;
  double operand = 1.0;
};

/// outputs[k] = last(inputs[0] op inputs[1] op ...); each of them has `bytes` bytes.
struct Fold {
  const std::byte* const* inputs;
  std::size_t input_count;
  std::byte* const* outputs;
  std::size_t output_count;
  std::size_t bytes;
  Last last;
};

/// Each for the types and operators in its name; the caller has seen to it that they have a
/// meaning. `last` is for floating and complex types only.
void fold_bits(const Fold& fold, ReduceOp::Kind op);   // band, bor, bxor of any integers
void fold_bools(const Fold& fold, ReduceOp::Kind op);  // band, bor, bxor of truth values
void fold_integers(const Fold& fold, DType dtype, ReduceOp::Kind op);  // sum, product, min, max
void fold_floats(const Fold& fold, DType dtype, ReduceOp::Kind op);    // f32, f64
void fold_halves(const Fold& fold, DType dtype, ReduceOp::Kind op);    // f16, bf16
void fold_complex_product(const Fold& fold, DType dtype);

}  // namespace peal::kernels
