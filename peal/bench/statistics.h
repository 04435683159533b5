// From samples to the few numbers that a report shows. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace peal::bench {

/// When a rank entered and left an operation, or a batch of them: nanoseconds of CLOCK_MONOTONIC,
/// which is one clock for all processes of a machine.
struct Interval {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// sample[i] = (max over ranks of end[i] - max over ranks of begin[i]) / operations, in
/// microseconds: from when the last rank entered until the last one left, so how unevenly the ranks
/// came does not count. `ranks`: each rank's intervals, all of the same number.
std::vector<double> samples_of(std::span<const std::vector<Interval>> ranks, double operations);

/// The value below which the fraction lies, interpolated between neighbours. `sorted` ascends and
/// has one value at least.
double quantile(std::span<const double> sorted, double fraction);

struct Summary {
  double median = 0;  // over the samples of all rounds
  double p99 = 0;
  double least = 0;  // of the rounds' medians
  double most = 0;
  std::vector<double> medians = {};  // of each round, in their order
  int rounds = 0;
  std::int64_t samples = 0;
  friend bool operator==(const Summary&, const Summary&) = default;
};

/// median over rounds i of other.medians[i] / own.medians[i]: what moves both in a round, as a
/// neighbour on the machine does, leaves it as it is. Both have as many rounds, one at least.
double ratio(const Summary& other, const Summary& own);

/// Whether it took more than so many times what the other took, in each of the times that both were
/// measured: once may be a neighbour on the machine.
bool is_far_behind(std::span<const double> own, std::span<const double> other, double times);

/// `rounds`: the samples of each round, none of them empty; one round at least.
Summary summarize(std::span<const std::vector<double>> rounds);

}  // namespace peal::bench
