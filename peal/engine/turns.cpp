#include "peal/engine/turns.h"

#include <utility>

namespace peal::engine {
namespace {

schedule::ScratchSize scratch_of(const transport::Window& window) {
  return {.ring = Bytes(static_cast<std::int64_t>(window.stage(window.first()).size())),
          .cell = transport::Window::kCell,
          .cells = transport::Window::kTurns};
}

}  // namespace

Turns::Turns(Rank self, int ranks, transport::Window& window, std::function<void(Rank)> check_entry)
    : self_(self),
      window_(window),
      check_entry_(std::move(check_entry)),
      host_{.first = window.first(), .count = window.ranks()},
      scratch_(scratch_of(window)),
      known_(static_cast<std::size_t>(ranks)),
      seen_(static_cast<std::size_t>(ranks)) {
  for (int i = 0; i < host_.count; ++i) {
    rings_.push_back(window.stage(host_[i]).data());
    cells_.push_back(window.cell(host_[i], 0));
  }
}

void Turns::enter(const Fingerprint& fingerprint, std::uint64_t place, Compare compare) {
  fingerprint_ = fingerprint;
  remark_ = {.check = fingerprint.detail, .place = place};
  compare_ = compare;
  before_ = 0;
  waited_ = 0;
}

void Turns::place_stage(Bytes stage, Places& places) {
  const schedule::Scratch::Place place = scratch_.place(stage);
  free_ = place.free;
  if (stage.value == 0) return;
  const std::vector<std::byte*>& stages = place.is_cell ? cells_ : rings_;
  const std::ptrdiff_t offset = place.is_cell ? transport::Window::cell_offset(scratch_.turn())
                                              : static_cast<std::ptrdiff_t>(place.offset.value);
  for (int i = 0; i < host_.count; ++i) {
    places.set(schedule::Space::kStage, host_[i], stages[static_cast<std::size_t>(i)] + offset);
  }
}

bool Turns::reached(const schedule::Ranks& ranks, std::int64_t value) {
  const Counter target = target_of(value);
  for (; waited_ < ranks.count; ++waited_) {
    const Rank rank = ranks[waited_];
    if (rank == self_) continue;
    auto& known = known_[static_cast<std::size_t>(rank)];
    if (known < target.value) {
      const std::uint64_t counter = window_.counter(rank, target.turn);
      if (counter < target.value) return false;
      known = counter;
    }
    // A look back finds ranks that need not be in this operation yet.
    if (value > 0 && !heard_from(rank)) compare(rank);
  }
  waited_ = 0;
  return true;
}

Turns::Counter Turns::missing(const schedule::Ranks& ranks, std::int64_t value) const {
  Counter counter = target_of(value);
  counter.rank = ranks[waited_];
  return counter;
}

void Turns::append_missing(const schedule::Ranks& ranks,
                           std::int64_t value,
                           std::vector<Rank>& missing) const {
  const Counter target = target_of(value);
  for (int i = 0; i < ranks.count; ++i) {
    if (ranks[i] != self_ && window_.counter(ranks[i], target.turn) < target.value) {
      missing.push_back(ranks[i]);
    }
  }
}

std::optional<std::uint64_t> Turns::place_of(Rank rank) const {
  const auto remark = window_.remark(rank, scratch_.turn());
  return remark.check == remark_.check ? std::optional(remark.place) : std::nullopt;
}

Turns::Counter Turns::target_of(std::int64_t value) const {
  if (value == 0) {
    return {.turn = free_.turn, .value = static_cast<std::uint64_t>(free_.counter)};
  }
  const std::int64_t counter = scratch_.base() + before_ + value;
  return {.turn = scratch_.turn(), .value = static_cast<std::uint64_t>(counter)};
}

void Turns::compare(Rank rank) {
  if (compare_ == Compare::kEntries ||
      window_.remark(rank, scratch_.turn()).check != remark_.check) {
    check_entry_(rank);  // which may have gone on since
  }
  seen_[static_cast<std::size_t>(rank)] = fingerprint_.sequence;
}

}  // namespace peal::engine
