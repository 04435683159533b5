// Summarizes samples to the few numbers of a report. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace peal::bench {

/// The times when a rank entered and left an operation or a batch, in nanoseconds of
/// CLOCK_MONOTONIC. All processes of a machine have the same clock.
struct Interval {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

///   sample[i] = (max over ranks of end[i] - max over ranks of begin[i]) / operations
/// In microseconds: the time from the last entry to the last exit, so uneven arrival of the ranks
/// does not count. `ranks`: the intervals of each rank; all ranks have the same number.
std::vector<double> samples_of(std::span<const std::vector<Interval>> ranks, double operations);

/// The value below which the fraction of all values lies, interpolated between neighbours. `sorted`
/// ascends and has at least one value.
double quantile(std::span<const double> sorted, double fraction);

struct Summary {
  double median = 0;  // over the samples of all rounds
  double p99 = 0;
  double least = 0;  // of the rounds' medians
  double most = 0;
  std::vector<double> medians = {};  // of each round, in order
  int rounds = 0;
  std::int64_t samples = 0;
  friend bool operator==(const Summary&, const Summary&) = default;
};

/// median over rounds i of other.medians[i] / own.medians[i]
/// If another program slows both in a round, the ratio does not change. Both have the same number
/// of rounds, at least one.
double ratio(const Summary& other, const Summary& own);

/// Whether each time of `own` is more than `times` times that of `other`. Each must be, because
/// another program on the machine may slow one measurement.
bool is_far_behind(std::span<const double> own, std::span<const double> other, double times);

/// `rounds`: the samples of each round; at least one round, and no round is empty.
Summary summarize(std::span<const std::vector<double>> rounds);

}  // namespace peal::bench
