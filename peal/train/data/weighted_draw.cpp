#include "peal/train/data/weighted_draw.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/train/data/random.h"

namespace peal::train::data {

WeightedDraw::WeightedDraw(std::span<const double> weights, Replacement replacement)
    : replacement_(replacement) {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!(weights[i] >= 0) || !std::isfinite(sum_ + weights[i])) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("weight {} of {} is {}: weights must be at least 0, and their sum "
                              "must be finite",
                              i,
                              weights.size(),
                              weights[i]));
    }
    sum_ += weights[i];
    if (weights[i] > 0) columns_.push_back({i, weights[i]});
  }
  if (columns_.empty()) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format(
            "none of {} weights is positive, so no sample can be drawn: pass at least one weight "
            "above 0",
            weights.size()));
  }
  if (replacement_ == Replacement::kWith) fill_table();
}

/// Every column gets the same probability. A column whose weight is below the mean is filled up
/// with an index whose weight is above the mean.
void WeightedDraw::fill_table() {
  const double mean = sum_ / static_cast<double>(columns_.size());
  std::vector<std::size_t> small, large;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    columns_[i].own = columns_[i].weight / mean;
    (columns_[i].own < 1 ? small : large).push_back(i);
  }
  while (!small.empty() && !large.empty()) {
    Column& filled = columns_[small.back()];
    const std::size_t giver = large.back();
    small.pop_back();
    filled.alias = columns_[giver].index;
    columns_[giver].own -= 1 - filled.own;
    if (columns_[giver].own < 1) {
      large.pop_back();
      small.push_back(giver);
    }
  }
  // Only rounding leaves columns here: they are full.
  for (const std::size_t full : small) columns_[full].own = 1;
  for (const std::size_t full : large) columns_[full].own = 1;
}

void WeightedDraw::require_possible(std::size_t count) const {
  if (replacement_ == Replacement::kWith || count <= columns_.size()) return;
  throw Error(ErrorKind::kUsage,
              fmt::format("{} samples cannot be drawn without replacement, because only {} weights "
                          "are positive: draw fewer samples, or with replacement",
                          count,
                          columns_.size()));
}

std::vector<std::size_t> WeightedDraw::draw(std::size_t count,
                                            std::uint64_t seed,
                                            std::uint64_t epoch) const {
  require_possible(count);
  return replacement_ == Replacement::kWith ? draw_with(count, seed, epoch)
                                            : draw_without(count, seed, epoch);
}

std::vector<std::size_t> WeightedDraw::draw_with(std::size_t count,
                                                 std::uint64_t seed,
                                                 std::uint64_t epoch) const {
  Random random({seed, epoch});
  std::vector<std::size_t> drawn(count);
  for (std::size_t& one : drawn) {
    const Column& column = columns_[random.below(columns_.size())];
    one = random.between(0, 1) < column.own ? column.index : column.alias;
  }
  return drawn;
}

/// Each index gets an exponential key with its weight as the rate. The keys in ascending order are
/// draws without replacement.
std::vector<std::size_t> WeightedDraw::draw_without(std::size_t count,
                                                    std::uint64_t seed,
                                                    std::uint64_t epoch) const {
  Random random({seed, epoch});
  std::vector<std::pair<double, std::size_t>> keys;
  keys.reserve(columns_.size());
  for (const Column& column : columns_) {
    keys.emplace_back(random.exponential() / column.weight, column.index);
  }
  const auto end = keys.begin() + static_cast<std::ptrdiff_t>(count);
  if (end != keys.end()) std::nth_element(keys.begin(), end, keys.end());
  std::sort(keys.begin(), end);
  std::vector<std::size_t> drawn(count);
  for (std::size_t i = 0; i < count; ++i) drawn[i] = keys[i].second;
  return drawn;
}

}  // namespace peal::train::data
