// Elements of any type as small exact numbers. So a test can compute the result of an operation in
// closed form, and every misplaced or missing element shows.
#pragma once

#include <complex>
#include <cstddef>
#include <string>
#include <vector>

#include "peal/base/dtype.h"
#include "peal/base/reduce_op.h"
#include "peal/group/buffer.h"

namespace peal::testing {

/// Memory with a type and a count.
class Values {
 public:
  Values(DType dtype, std::int64_t count);
  /// Borrowed memory, as from ProcessGroup::allocate.
  Values(std::byte* data, DType dtype, std::int64_t count);

  DType dtype() const { return dtype_; }
  std::int64_t count() const { return count_; }
  Buffer buffer(std::int64_t offset = 0, std::int64_t count = -1);

  void set(std::int64_t index, std::complex<double> value);
  std::complex<double> get(std::int64_t index) const;

  /// Copies the first `count` elements of `from`, which has the same type, to element `to` and on.
  void copy(const Values& from, std::int64_t to, std::int64_t count);

  /// Sets each byte to a value that depends on `seed` and its position.
  void fill_bytes(std::uint64_t seed);
  /// "" if the `count` elements from `offset` on equal those of fill_bytes(seed) from element
  /// `from` on; otherwise the difference.
  std::string compare_bytes(std::uint64_t seed,
                            std::int64_t from,
                            std::int64_t offset,
                            std::int64_t count) const;

  const std::byte* data() const { return data_; }

 private:
  std::byte* element(std::int64_t index) const;

  DType dtype_;
  std::int64_t count_;
  std::vector<std::byte> owned_;
  std::byte* data_;
};

/// The operand of `rank` at `index` for a reduction by `op`. It is small enough that every result
/// is exact in every type, for up to 16 ranks.
std::complex<double> operand(ReduceOp::Kind op, DType dtype, Rank rank, std::int64_t index);

/// The operands of all ranks at `index`, reduced. premul_sum: with the factor 0.5 on every rank.
std::complex<double> reduced(ReduceOp::Kind op, DType dtype, int ranks, std::int64_t index);

/// Fills with the rank's operands, from element `from` of the whole on.
void fill_operands(Values& values, ReduceOp::Kind op, Rank rank, std::int64_t from = 0);

/// "" if [0, count) are the reduced operands from element `from` on; otherwise the difference.
std::string compare_reduced(const Values& values,
                            ReduceOp::Kind op,
                            int ranks,
                            std::int64_t from,
                            std::int64_t offset,
                            std::int64_t count);

}  // namespace peal::testing
