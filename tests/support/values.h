// Elements of any type as small exact numbers, so that a test can say in closed form what an
// operation gives, and every misplaced or missing element shows.
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

  /// The first `count` elements of others of the same type, from element `to` on.
  void copy(const Values& from, std::int64_t to, std::int64_t count);

  /// Each byte becomes one that depends on `seed` and its place.
  void fill_bytes(std::uint64_t seed);
  /// "" if bytes [offset, offset + count) elements are those that fill_bytes(seed) gives from
  /// element `from` on; else what differs.
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

/// What rank gives at `index` to a reduction by `op`: small enough that every result is exact in
/// every type, for up to 16 ranks.
std::complex<double> operand(ReduceOp::Kind op, DType dtype, Rank rank, std::int64_t index);

/// The operands of all ranks at `index`, reduced. premul_sum: with the factor 0.5 on every rank.
std::complex<double> reduced(ReduceOp::Kind op, DType dtype, int ranks, std::int64_t index);

/// Fills with the rank's operands, from element `from` of the whole on.
void fill_operands(Values& values, ReduceOp::Kind op, Rank rank, std::int64_t from = 0);

/// "" if [0, count) are the reduced operands from element `from` on; else what differs.
std::string compare_reduced(const Values& values,
                            ReduceOp::Kind op,
                            int ranks,
                            std::int64_t from,
                            std::int64_t offset,
                            std::int64_t count);

}  // namespace peal::testing
