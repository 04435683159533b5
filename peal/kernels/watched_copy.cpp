#include "peal/kernels/watched_copy.h"

#include <algorithm>

#include "peal/base/clock.h"

namespace peal::kernels {

void WatchedCopy::copy_and_watch(const std::byte* from, std::byte* to, Bytes size) {
  if (suspects_nothing() && ++unwatched_ < kWatchEvery) return copy(from, to, size);
  unwatched_ = 0;
  for (Bytes done; done < size;) {
    const Advice advice = next(size - done);
    const TimePoint begin = Clock::now();
    copy(from + done.value, to + done.value, advice.size, advice.stores);
    took(advice, Clock::now() - begin);
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
