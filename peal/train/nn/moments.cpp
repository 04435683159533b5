#include "peal/train/nn/moments.h"

namespace peal::train {

Moments no_moments(std::size_t channels) {
  return {.count = 0,
          .mean = std::vector<double>(channels, 0.0),
          .squares = std::vector<double>(channels, 0.0)};
}

Moments combined(Moments all, const Moments& more) {
  if (more.count == 0) return all;
  const double count = all.count + more.count;
  for (std::size_t c = 0; c < all.channels(); ++c) {
    const double difference = more.mean[c] - all.mean[c];
    all.mean[c] += difference * (more.count / count);
    all.squares[c] += more.squares[c] + difference * difference * (all.count / count) * more.count;
  }
  all.count = count;
  return all;
}

std::vector<double> row_of(const Moments& moments) {
  std::vector<double> row = {moments.count};
  row.insert(row.end(), moments.mean.begin(), moments.mean.end());
  row.insert(row.end(), moments.squares.begin(), moments.squares.end());
  return row;
}

Moments moments_of(std::span<const double> row) {
  const std::size_t channels = (row.size() - 1) / 2;
  const auto mean = row.subspan(1, channels);
  const auto squares = row.subspan(1 + channels, channels);
  return {.count = row[0],
          .mean = {mean.begin(), mean.end()},
          .squares = {squares.begin(), squares.end()}};
}

}  // namespace peal::train
