#include "peal/train/data/partitioner.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/error.h"
#include "peal/train/data/permutation.h"

namespace peal::train::data {
namespace {

constexpr double kRoundingError = 1e-9;  // an allowed error of sums such as 10 times 0.1

}  // namespace

DataPartitioner::DataPartitioner(std::size_t size,
                                 std::span<const double> fractions,
                                 std::uint64_t seed)
    : order_(permutation(size, seed)), cuts_{0} {
  double sum = 0;
  for (const double fraction : fractions) {
    sum += fraction;
    if (!(fraction >= 0) || sum > 1 + kRoundingError) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("a data set cannot be split into fractions {}: each must be at least "
                              "0, and their sum at most 1",
                              fmt::join(fractions, ", ")));
    }
    const auto cut = static_cast<std::size_t>(std::llround(static_cast<double>(size) * sum));
    cuts_.push_back(std::min(cut, size));
  }
}

DataPartitioner DataPartitioner::equal(std::size_t size, int parts, std::uint64_t seed) {
  if (parts < 1) {
    throw Error(ErrorKind::kUsage,
                fmt::format("a data set cannot be split into {} parts: pass 1 or more", parts));
  }
  const std::vector<double> fractions(static_cast<std::size_t>(parts), 1.0 / parts);
  return DataPartitioner(size, fractions, seed);
}

std::span<const std::size_t> DataPartitioner::part(std::size_t index) const {
  if (index >= parts()) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format(
            "the data set has no part {}: it was split into {} parts, from 0 on", index, parts()));
  }
  return std::span(order_).subspan(cuts_[index], cuts_[index + 1] - cuts_[index]);
}

}  // namespace peal::train::data
