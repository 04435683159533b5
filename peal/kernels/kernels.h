// Loops over elements: copy, reduce, scale. SIMD by Google Highway, chosen at run time for the CPU.
// Called by the engine for every step that moves data, and by the native backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "peal/base/dtype.h"
#include "peal/base/reduce_op.h"
#include "peal/base/units.h"

namespace peal::kernels {

/// Applied once to the completed value of a reduction that adds: value / divisor. Integers are
/// truncated toward zero. A divisor of 1 changes nothing.
struct Finish {
  double divisor = 1.0;
};

/// Inputs are multiplied by their weights before they are added: one weight for each input, or none
/// if all are 1. The first product is rounded. The other products are added unrounded, so each step
/// rounds once.
using Weights = std::span<const double>;

/// How results are written; the same bits either way.
enum class Stores : unsigned char {
  kCached,
  /// Past the caches, in whole lines, so that a line is not read before it is overwritten. For
  /// outputs that are no inputs, where all that is read and written exceeds the last cache
  /// (last_cache() in base/cpus.h): up to twice as fast there. An output that is also an
  /// input has just been read, so nothing is saved, and it takes 1.3 times the time beyond the
  /// cache and five times within it. Completed before the call returns, so that a release store
  /// publishes it as it would ordinary stores. Ordinary stores are used where outputs lie
  /// differently relative to lines of 64 bytes, and for more than 16 inputs.
  kStreaming,
};

/// out_k[i] = finish(weights[0] * inputs[0][i] op weights[1] * inputs[1][i] op ...), left to right,
/// for each output k. The same bits on every CPU, whatever the count and the number of outputs.
///   f16 and bf16 are weighted, accumulated and divided in f32 and rounded once, to nearest even.
///   Integers wrap. avg and premul_sum add. Complex products are (ac - bd) + (ad + bc)i, infinities
///   or not. bool: sum and max are or, product and min are and; any nonzero byte counts as true,
///   results are 0 or 1. min and max give NaN if any value is NaN; of -0 and +0 they give the
///   first. Every NaN in a result is the positive quiet NaN without payload.
/// Shape: every span of memory holds `count` elements, at any address; at least one input and one
///   output. Outputs may be the same memory as inputs at the same place, never shifted against one.
/// Threads: any, on memory that no other writes.
/// Errors: unsupported where has_meaning(op, dtype) is false; for a divisor other than 1 where op
///   does not add, and for integers unless op is avg; and for weights where op does not add or
///   dtype has no fractions. usage without inputs or outputs, for more or fewer weights than
///   inputs, and for integers where the divisor is not a whole number from 1 to 2^53.
/// Cost: each input is read once and each output written once; the average of integers writes its
///   first output twice. No allocation.
void reduce(std::span<const std::byte* const> inputs,
            std::span<std::byte* const> outputs,
            Elements count,
            DType dtype,
            ReduceOp::Kind op,
            Finish finish = {},
            Stores stores = Stores::kCached,
            Weights weights = {});

struct Fold;  // fold.h

/// Applied once to a completed fraction, before it is rounded to its type.
struct Last {
  enum class Kind : unsigned char { kNothing, kDivide, kMultiply };
  Kind kind = Kind::kNothing;
  double operand = 1.0;
};

/// reduce() with its loop chosen once, for callers that reduce again and again: a call on few
/// elements costs a few nanoseconds.
class Reducer {
 public:
  /// Errors: those of reduce() that are about op and dtype.
  Reducer(DType dtype, ReduceOp::Kind op, Finish finish = {});

  /// As reduce().
  void operator()(std::span<const std::byte* const> inputs,
                  std::span<std::byte* const> outputs,
                  Elements count,
                  Stores stores = Stores::kCached,
                  Weights weights = {}) const;

 private:
  void reduce_and_divide(std::span<const std::byte* const> inputs,
                         std::span<std::byte* const> outputs,
                         Elements count) const;

  void (*loop_)(const Fold&);
  void (*weighted_)(const Fold&);  // null where weights have no meaning
  Bytes element_;
  Last last_;
  /// Divides completed integers; null for other types, and for a divisor of 1.
  void (*divide_)(std::byte* values, std::size_t bytes, std::int64_t divisor) = nullptr;
  std::int64_t divisor_ = 1;
};

/// to[i] = factor * from[i], for premul_sum: in f64 for f64 and c128, else in f32, rounded once.
/// Shape: `count` elements at any address; `to` may be `from`, and not overlap it otherwise.
/// Errors: unsupported for types that are neither floating nor complex.
void scale(const std::byte* from, std::byte* to, Elements count, DType dtype, double factor);

/// Copies; the two may not overlap unless they are the same place.
void copy(const std::byte* from, std::byte* to, Bytes size, Stores stores = Stores::kCached);

/// Copies to each target, reading the source once. A target may be the source, and overlap neither
/// it nor another otherwise.
void copy(const std::byte* from,
          std::span<std::byte* const> targets,
          Bytes size,
          Stores stores = Stores::kCached);

}  // namespace peal::kernels
