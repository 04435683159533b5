#include "peal/schedule/scratch.h"

#include <algorithm>

namespace peal::schedule {

Scratch::Scratch(ScratchSize size)
    : size_(size),
      cells_free_(static_cast<std::size_t>(size.cells)),
      bank_size_(static_cast<std::uint64_t>(std::max(size.cells / 2, 1))) {}

void Scratch::enter_bank() {
  bank_ = turn_ / bank_size_;
  const auto first = cells_free_.begin() +
                     static_cast<std::ptrdiff_t>(bank_ * bank_size_ & (cells_free_.size() - 1));
  bank_free_ = *std::max_element(
      first, first + static_cast<std::ptrdiff_t>(bank_size_), [](const Look& a, const Look& b) {
        return a.counter < b.counter;
      });
}

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
