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
  bank_free_ =
      *std::max_element(first,
                        first + static_cast<std::ptrdiff_t>(bank_size_),
                        [](const FreeWhen& a, const FreeWhen& b) { return a.counter < b.counter; });
}

/// A lap is the whole ring, an eighth of the ring, an eighth of that, and so on. So the added part
/// has room for the largest operation (a third of the lap) and does not overwrite the place of the
/// previous operation. From 8 KiB on, operations use the whole ring of 3 MiB. Measured: with places
/// of 16 KiB, a lap that fits into a core's L2 cache is slower by a twentieth, because the peers
/// have just read its lines.
void Scratch::lengthen_lap(std::int64_t length) {
  std::int64_t lap = size_.ring.value;
  for (std::int64_t part = lap; part >= length * kPlaces;
       part = part / 8 / kGrain.value * kGrain.value) {
    lap = part;
  }
  // The old lap is free when its last operation is free. After the new part, the cursor returns to
  // the old lap.
  if (!regions_.empty()) {
    const Region last{0, regions_.back().free};
    regions_ = {};
    regions_.push(last);
  }
  cursor_ = lap_;
  lap_ = lap;
}

Scratch::Reservation Scratch::place_in_ring(Bytes stage) {
  const std::int64_t length = (stage.value + kGrain.value - 1) / kGrain.value * kGrain.value;
  if (length * kPlaces > lap_ && lap_ < size_.ring.value) lengthen_lap(length);
  if (cursor_ % lap_ + length > lap_) cursor_ += lap_ - cursor_ % lap_;
  const Bytes offset(cursor_ % lap_);
  // A region is overwritten if it began at least a lap before the end of this one.
  while (!regions_.empty() && regions_.front().begin < cursor_ + length - lap_) {
    overwritten_ = regions_.pop().free;
  }
  regions_.push({cursor_, {}});
  cursor_ += length;
  taken_ = Taken::kRegion;
  return {.is_cell = false, .offset = offset, .free = overwritten_};
}

}  // namespace peal::schedule
