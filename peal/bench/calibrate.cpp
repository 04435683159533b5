#include "peal/bench/calibrate.h"

#include <algorithm>
#include <array>

namespace peal::bench {
namespace {

/// Up to here an operation is too short to be timed alone.
constexpr Bytes kBatched = 256_B;
constexpr double kBatchMicroseconds = 35;
constexpr int kLargestBatch = 10'000;
constexpr int kFewest = 2;
constexpr int kMost = 20'000;
constexpr int kMostWarmup = 20;
/// Of a round's time, what the tries and then the round itself are given.
constexpr std::array kShares = {0.1, 0.2, 1.0};
/// The check of a large case by an interpreter takes its time.
constexpr std::chrono::seconds kLeastPatience{120};
/// A neighbour may have the cores while it is measured, and not while it was calibrated.
constexpr double kSlack = 10;

/// The timing that has room for so many iterations, where an operation takes `one` microseconds.
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
    if (is_slow && i == 0) continue;  // it may have been the machine: the same again
    timing = fit(c, timing, tried->median, kShares[i] * seconds / each);
    if (is_slow) break;
  }
  return timing;
}

Timeout patience_for(double seconds) {
  return kLeastPatience +
         std::chrono::duration_cast<Timeout>(std::chrono::duration<double>(kSlack * seconds));
}

}  // namespace peal::bench
