// Loops over elements: copy, reduce, scale. SIMD by Google Highway, which chooses the instruction
// set at run time. Called by the engine for every step that moves data, and by the native backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "peal/base/dtype.h"
#include "peal/base/reduce_op.h"
#include "peal/base/units.h"

namespace peal::kernels {

/// The last step of a reduction that adds: value / divisor, applied once to the complete value.
/// Integers are truncated toward zero. A divisor of 1 changes nothing.
struct Finish {
  double divisor = 1.0;
};

/// Factors of the inputs: each input is multiplied by its weight before it is added. One weight for
/// each input, or an empty span if all weights are 1. The first product is rounded. The other
/// products are added unrounded, so each step rounds once.
using Weights = std::span<const double>;

/// How results are written. Both ways give the same bits.
enum class Stores : unsigned char {
  kCached,
  /// Past the caches, in whole lines, so that the CPU does not read a line before it is
  /// overwritten. Use it for outputs that are not inputs, if everything read and written exceeds
  /// the last cache (last_cache() in system/cpus.h): up to twice as fast there. An output that is
  /// also an input has just been read, so nothing is saved: it takes 1.3 times as long beyond the
  /// cache, and five times within it. The stores complete before the call returns, so a release
  /// store publishes them like ordinary stores. Ordinary stores are used if the outputs have
  /// different offsets in lines of 64 bytes, and for more than 16 inputs.
  kStreaming,
};

struct Fold;  // fold.h

/// The last step of a floating or complex reduction, applied once before the value is rounded to
/// its type.
struct Last {
  enum class Kind : unsigned char { kNothing, kDivide, kMultiply };
  Kind kind = Kind::kNothing;
  double operand = 1.0;
};

/// Reduces values of one type by one operator. The loop is chosen once, so a call on few elements
/// costs a few nanoseconds.
/// Threads: any number at once, on memory that no other thread writes.
class Reducer {
 public:
  /// Errors: unsupported if has_meaning(op, dtype) is false; for a divisor other than 1 if op does
  ///   not add, and for integers unless op is avg. usage for integers if the divisor is not a whole
  ///   number from 1 to 2^53.
  Reducer(DType dtype, ReduceOp::Kind op, Finish finish = {});

  /// out_k[i] = finish(weights[0] * inputs[0][i] op weights[1] * inputs[1][i] op ...), left to
  /// right, for each output k. The same bits on every CPU, whatever the count and the number of
  /// outputs.
  ///   f16 and bf16 are weighted, accumulated and divided in f32 and rounded once, to nearest even.
  ///   Integers wrap. avg and premul_sum add. Complex products are (ac - bd) + (ad + bc)i, also
  ///   with infinities. bool: sum and max are or, product and min are and; any nonzero byte counts
  ///   as true, results are 0 or 1. min and max give NaN if any value is NaN; of -0 and +0 they
  ///   give the first. Every NaN in a result is the positive quiet NaN without payload.
  /// Shape: every span of memory holds `count` elements, at any address; at least one input and one
  ///   output. An output may be the same memory as an input at the same place, but must not overlap
  ///   an input otherwise.
  /// Errors: unsupported for weights if op does not add or dtype is neither floating nor complex.
  ///   usage without inputs or outputs, and if the numbers of weights and inputs differ.
  /// Cost: each input is read once and each output written once; the average of integers writes its
  ///   first output twice. No allocation.
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
  void (*weighted_)(const Fold&);  // null if weights have no meaning
  Bytes element_;
  Last last_;
  /// Divides complete integers; null for other types, and for a divisor of 1.
  void (*divide_)(std::byte* values, std::size_t bytes, std::int64_t divisor) = nullptr;
  std::int64_t divisor_ = 1;
};

/// to[i] = factor * from[i], for premul_sum: computed in f64 for f64 and c128, otherwise in f32,
/// and rounded once.
/// Shape: `count` elements at any address; `to` may equal `from`, but must not overlap it
///   otherwise.
/// Errors: unsupported for types that are neither floating nor complex.
void scale(const std::byte* from, std::byte* to, Elements count, DType dtype, double factor);

/// Copies. The two memories must not overlap, unless they are the same place.
void copy(const std::byte* from, std::byte* to, Bytes size, Stores stores = Stores::kCached);

/// Copies to each target, reading the source once. A target may be the source. Otherwise a target
/// must not overlap the source or another target.
void copy(const std::byte* from,
          std::span<std::byte* const> targets,
          Bytes size,
          Stores stores = Stores::kCached);

}  // namespace peal::kernels
