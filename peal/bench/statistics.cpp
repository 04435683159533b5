#include "peal/bench/statistics.h"

#include <algorithm>
#include <cmath>

namespace peal::bench {

std::vector<double> samples_of(std::span<const std::vector<Interval>> ranks, double operations) {
  std::vector<double> samples;
  for (std::size_t i = 0; i < ranks.front().size(); ++i) {
    Interval last = ranks.front()[i];
    for (const std::vector<Interval>& rank : ranks) {
      last = {std::max(last.begin, rank[i].begin), std::max(last.end, rank[i].end)};
    }
    samples.push_back(static_cast<double>(last.end - last.begin) / operations / 1000);
  }
  return samples;
}

double quantile(std::span<const double> sorted, double fraction) {
  const double place = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(place));
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], place - std::floor(place));
}

double ratio(const Summary& other, const Summary& own) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < own.medians.size(); ++i) {
    ratios.push_back(other.medians[i] / own.medians[i]);
  }
  std::ranges::sort(ratios);
  return quantile(ratios, 0.5);
}

bool is_far_behind(std::span<const double> own, std::span<const double> other, double times) {
  return std::ranges::equal(
      own, other, [&](double mine, double theirs) { return mine > times * theirs; });
}

Summary summarize(std::span<const std::vector<double>> rounds) {
  std::vector<double> all;
  std::vector<double> medians;
  for (std::vector<double> round : rounds) {
    std::ranges::sort(round);
    medians.push_back(quantile(round, 0.5));
    all.insert(all.end(), round.begin(), round.end());
  }
  std::ranges::sort(all);
  const auto [least, most] = std::ranges::minmax(medians);
  return {.median = quantile(all, 0.5),
          .p99 = quantile(all, 0.99),
          .least = least,
          .most = most,
          .medians = std::move(medians),
          .rounds = static_cast<int>(rounds.size()),
          .samples = static_cast<std::int64_t>(all.size())};
}

}  // namespace peal::bench
