#include "peal/engine/turns.h"

#include <utility>

namespace peal::engine {
namespace {

// Sequences of operations are proved with these sizes.
static_assert(schedule::engine_scratch({}).cell == transport::Window::kCell);
static_assert(schedule::engine_scratch({}).cells == transport::Window::kTurns);

schedule::ScratchSize scratch_of(const transport::Window& window) {
  return schedule::engine_scratch(
      Bytes(static_cast<std::int64_t>(window.stage(window.first()).size())));
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

}  // namespace peal::engine
