#include "peal/engine/stage_stores.h"

#include <algorithm>

namespace peal::engine {

using kernels::Stores;

StageStores::Advice StageStores::next(Bytes left) const {
  if (streaming_ > 0) return {Stores::kStreaming, left};
  const bool is_trial = suspicions_ > 0 || period_ > kShortest;
  return {Stores::kCached, is_trial ? std::min(left, kSmallest) : left};
}

void StageStores::took(const Advice& advice, std::chrono::nanoseconds time) {
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

}  // namespace peal::engine
