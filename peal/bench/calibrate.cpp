#include "peal/bench/calibrate.h"

#include <algorithm>
#include <array>

namespace peal::bench {
namespace {

/// Up to this size an operation is too short to be timed alone.
constexpr Bytes kBatched = 256_B;
constexpr double kBatchMicroseconds = 35;
constexpr int kLargestBatch = 10'000;
constexpr int kFewest = 2;
constexpr int kMost = 20'000;
constexpr int kMostWarmup = 20;
/// The parts of a round's time for the trials, and then for the round.
constexpr std::array kShares = {0.1, 0.2, 1.0};
/// A Python worker needs time to check a large case.
constexpr std::chrono::seconds kLeastPatience{120};
/// Other programs may use the cores during the measurement, but not during the calibration.
constexpr double kSlack = 10;

/// A timing with `room` iterations, for an operation that takes `one` microseconds.
Timing fit(const Case& c, Timing timing, double one, double room) {
  if (bytes_of(c) <= kBatched) {
    const int batch =
        static_cast<int>(kBatchMicroseconds / operations_in(c) / std::max(one, 0.001));
    timing.batch = std::clamp(batch, 1, kLargestBatch);
  }
  timing.iterations = static_cast<int>(std::clamp<double>(room, kFewest, kMost));
  timing.warmup = std::clamp(timing.iterations / 10, 1, kMostWarmup);
  return timing;
}

}  // namespace

int operations_in(const Case& c) { return c.op == Op::kSendRecv ? 2 : 1; }

std::optional<Timing> calibrate(const Case& c, Timing first, double seconds, const Try& attempt) {
  Timing timing = first;
  timing.warmup = 0;
  timing.iterations = 1;
  timing.batch = 1;
  for (std::size_t i = 0; i < kShares.size(); ++i) {
    const auto tried = attempt(timing);
    if (!tried) return std::nullopt;
    const double each = tried->seconds / (timing.warmup + timing.iterations);
    const bool is_slow = kFewest * each > seconds;
    if (is_slow && i == 0) continue;  // the machine may have been busy: try again
    timing = fit(c, timing, tried->median, kShares[i] * seconds / each);
    if (is_slow) break;
  }
  return timing;
}

Timeout time_limit_for(double seconds) {
  return kLeastPatience +
         std::chrono::duration_cast<Timeout>(std::chrono::duration<double>(kSlack * seconds));
}

}  // namespace peal::bench
