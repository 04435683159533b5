#include "peal/kernels/watched_copy.h"

#include <algorithm>

#include "peal/base/clock.h"

namespace peal::kernels {
namespace {

/// Copies as advised and returns the time. Stores past the caches tell nothing about the time of
/// ordinary stores, so for them the clock is not read.
std::chrono::nanoseconds timed_copy(const std::byte* from,
                                    std::byte* to,
                                    const WatchedCopy::Advice& advice) {
  const bool is_judged = advice.stores == Stores::kCached;
  const TimePoint begin = is_judged ? Clock::now() : TimePoint();
  copy(from, to, advice.size, advice.stores);
  return is_judged ? Clock::now() - begin : std::chrono::nanoseconds(0);
}

}  // namespace

void WatchedCopy::copy_and_watch(const std::byte* from, std::byte* to, Bytes size) {
  if (suspects_nothing() && ++unwatched_ < kWatchEvery) return copy(from, to, size);
  unwatched_ = 0;
  for (Bytes done; done < size;) {
    const Advice advice = next(size - done);
    took(advice, timed_copy(from + done.value, to + done.value, advice));
    done += advice.size;
  }
}

WatchedCopy::Advice WatchedCopy::next(Bytes left) const {
  if (streaming_ > 0) return {Stores::kStreaming, left};
  return {Stores::kCached, suspects_nothing() ? left : std::min(left, kSmallest)};
}

void WatchedCopy::took(const Advice& advice, std::chrono::nanoseconds time) {
  if (advice.stores == Stores::kStreaming) {
    --streaming_;
    return;
  }
  if (advice.size < kSmallest) return;
  if (time.count() < kFar * (advice.size / 64_B)) {
    suspicions_ = 0;
    period_ = kShortest;
    return;
  }
  // One slow copy may be an interruption.
  if (++suspicions_ < 2) return;
  suspicions_ = 0;
  streaming_ = period_;
  period_ = std::min(period_ * 2, kLongest);
}

}  // namespace peal::kernels
