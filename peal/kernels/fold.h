// The interface between kernels.cpp and the loops: plain pointers and sizes. Code that is compiled
// for several instruction sets must not instantiate templates that other code shares.
#pragma once

#include <cstddef>

#include "peal/base/dtype.h"
#include "peal/base/reduce_op.h"
#include "peal/kernels/kernels.h"

namespace peal::kernels {

/// The size of a cache line, which a streaming store writes as a whole.
inline constexpr std::size_t kLine = 64;

/// outputs[k] = last(weights[0] * inputs[0] op weights[1] * inputs[1] op ...); each input and
/// output has `bytes` bytes. Streamed outputs have the same offset in a cache line, and lie at a
/// multiple of their elements' size.
struct Fold {
  const std::byte* const* inputs;
  std::size_t input_count;
  std::byte* const* outputs;
  std::size_t output_count;
  std::size_t bytes;
  Last last;
  Stores stores;
  const double* weights;  // null if the loop has no weights
};

/// Runs a fold that has inputs, outputs and bytes.
using Loop = void (*)(const Fold& fold);

/// Each loop is for the types and operators in its name, with the best instruction set of this CPU.
/// The caller has checked that type and operator fit. `last` and weights are for floating and
/// complex types only.
Loop bits_loop(ReduceOp::Kind op);                   // band, bor, bxor of any integers
Loop bools_loop(ReduceOp::Kind op);                  // band, bor, bxor of truth values
Loop integers_loop(DType dtype, ReduceOp::Kind op);  // sum, avg, product, min, max
Loop floats_loop(DType dtype, ReduceOp::Kind op);    // f32, f64
Loop f16_bf16_loop(DType dtype, ReduceOp::Kind op);  // f16, bf16
Loop complex_product_loop(DType dtype);
Loop weighted_floats_loop(DType dtype);    // the sum of f32, f64
Loop weighted_f16_bf16_loop(DType dtype);  // the sum of f16, bf16

/// Copies past the caches, except for incomplete lines at the ends. Another thread sees the result
/// only after a store fence.
using Copy = void (*)(const std::byte* from, std::byte* to, std::size_t bytes);
Copy streaming_copy();

}  // namespace peal::kernels
