#include "peal/schedule/scratch.h"

#include <algorithm>

namespace peal::schedule {

Scratch::Scratch(ScratchSize size)
    : size_(size), cells_free_(static_cast<std::size_t>(size.cells)) {}

Scratch::Place Scratch::place_in_ring(Bytes stage) {
  const std::int64_t length = (stage.value + kGrain.value - 1) / kGrain.value * kGrain.value;
  const std::int64_t lap = size_.ring.value;
  if (cursor_ % lap + length > lap) cursor_ += lap - cursor_ % lap;
  const Bytes offset(cursor_ % lap);
  // A region that began less than a lap before the end of this one is not overwritten.
  while (!regions_.empty() && regions_.front().begin < cursor_ + length - lap) {
    overwritten_ = regions_.front().free;
    regions_.pop_front();
  }
  regions_.push_back({cursor_, {}});
  cursor_ += length;
  taken_ = Taken::kRegion;
  return {.is_cell = false, .offset = offset, .free = overwritten_};
}

}  // namespace peal::schedule
