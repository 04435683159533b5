// Count, mean and variance of values that several ranks have parts of. The arithmetic of
// SyncBatchNorm, without LibTorch.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace peal::train {

/// Of `count` values in each of `channels()` channels: the mean, and the sum of the squared
/// differences from the mean.
struct Moments {
  double count = 0;
  std::vector<double> mean;
  std::vector<double> squares;

  std::size_t channels() const { return mean.size(); }
  friend bool operator==(const Moments&, const Moments&) = default;
};

/// No values in `channels` channels.
Moments no_moments(std::size_t channels);

/// The moments of the values of both. More precise than sums of squares, which cancel if the mean
/// is far from 0.
/// Source: Chan, Golub and LeVeque 1979, Updating formulae and a pairwise algorithm for computing
///   sample variances, equations 2.1.
Moments combined(Moments all, const Moments& more);

/// As a row of 1 + 2 * channels numbers: count, means, squares.
std::vector<double> row_of(const Moments& moments);
Moments moments_of(std::span<const double> row);

}  // namespace peal::train
