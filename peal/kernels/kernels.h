// Loops over elements: copy, reduce, scale. SIMD by Google Highway, chosen at run time for the CPU.
#pragma once

#include <cstddef>
#include <span>

#include "peal/base/dtype.h"
#include "peal/base/reduce_op.h"
#include "peal/base/units.h"

namespace peal::kernels {

/// Applied to the completed value of a reduction that adds, once: value / divisor. The number of
/// ranks for avg; 1 means nothing to do.
struct Finish {
  double divisor = 1.0;
};

/// out_k[i] = finish(inputs[0][i] op inputs[1][i] op ...), left to right, for each output k. The
/// same bits on every CPU, whatever the count and the number of outputs (of several NaNs, which
/// one is left open).
///   f16 and bf16 are accumulated and divided in f32 and rounded once, to nearest even. Integers
///   wrap. avg and premul_sum add. Complex products are (ac - bd) + (ad + bc)i, infinities or not.
///   bool: sum and max are or, product and min are and; any nonzero byte counts as true, results
///   are 0 or 1. min and max give NaN if any value is NaN; of -0 and +0 they give the first.
/// Shape: every span of memory holds `count` elements, at any address; at least one input and one
///   output. Outputs may be the same memory as inputs at the same place, never shifted against one.
/// Threads: any, on memory that no other writes.
/// Errors: unsupported where has_meaning(op, dtype) is false, and for a divisor other than 1 where
///   op does not add or dtype has no fractions; usage without inputs or outputs.
/// Cost: each input is read once and each output written once. No allocation.
void reduce(std::span<const std::byte* const> inputs,
            std::span<std::byte* const> outputs,
            Elements count,
            DType dtype,
            ReduceOp::Kind op,
            Finish finish = {});

/// to[i] = factor * from[i], for premul_sum: in f64 for f64 and c128, else in f32, rounded once.
/// Shape: `count` elements at any address; `to` may be `from`, and not overlap it otherwise.
/// Errors: unsupported for types that are neither floating nor complex.
void scale(const std::byte* from, std::byte* to, Elements count, DType dtype, double factor);

/// Copies; the two may not overlap unless they are the same place.
void copy(const std::byte* from, std::byte* to, Bytes size);

}  // namespace peal::kernels
