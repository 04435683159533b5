#include "peal/schedule/scratch.h"

#include <algorithm>

namespace peal::schedule {

Scratch::Scratch(ScratchSize size)
    : size_(size), cells_free_(static_cast<std::size_t>(size.cells)) {}

Scratch::Place Scratch::place(Bytes stage) {
  if (stage <= size_.cell) {
    taken_ = Taken::kCell;
    return {
        .is_cell = true, .offset = Bytes(static_cast<std::int64_t>(turn_)), .free = free_cell()};
  }
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

void Scratch::end_turn(std::int64_t span) {
  base_ += span;
  // Who signals in the next turn has left this one.
  const Look free{.turn = turn_ + 1, .counter = base_ + 1};
  if (taken_ == Taken::kCell) free_cell() = free;
  if (taken_ == Taken::kRegion) regions_.back().free = free;
  taken_ = Taken::kNothing;
  ++turn_;
}

}  // namespace peal::schedule
