// Splits a data set into parts of given fractions, such as train, validation and test, or one part
// for each rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace peal::train::data {

/// A value: the indices of each part.
class DataPartitioner {
 public:
  /// Shuffles 0 .. size - 1 by `seed` and cuts it at the sums of the fractions, rounded to whole
  /// samples: part p has the indices from round(size * (f_0 + .. + f_p-1)) on. Fractions that sum
  /// to 1 lose no sample. Errors: usage (a fraction below 0, a sum above 1).
  DataPartitioner(std::size_t size, std::span<const double> fractions, std::uint64_t seed = 1234);

  /// Splits into `parts` equal parts; their sizes differ by one sample at most.
  static DataPartitioner equal(std::size_t size, int parts, std::uint64_t seed = 1234);

  std::size_t parts() const { return cuts_.size() - 1; }
  /// The samples of a part. Errors: usage (no such part).
  std::span<const std::size_t> part(std::size_t index) const;

 private:
  std::vector<std::size_t> order_;
  std::vector<std::size_t> cuts_;  // part p is order_ from cuts_[p] to cuts_[p + 1]
};

}  // namespace peal::train::data
