#include "peal/engine/planner.h"

#include <utility>

namespace peal::engine {

using schedule::Move;
using schedule::Space;

PlannedPart::PlannedPart(schedule::Part p, int ranks)
    : part(std::move(p)),
      sent(static_cast<std::size_t>(ranks)),
      received(static_cast<std::size_t>(ranks)) {
  for (const schedule::Step& step : part.steps) {
    const Move* move = std::get_if<Move>(&step);
    if (move == nullptr) continue;
    for (const schedule::Slice& slice : move->to) {
      if (slice.space == Space::kWire)
        sent[static_cast<std::size_t>(slice.ranks.first)] += move->count;
    }
    for (const schedule::Slice& slice : move->from) {
      if (slice.space == Space::kWire) {
        received[static_cast<std::size_t>(slice.ranks.first)] += move->count;
      }
    }
  }
}

}  // namespace peal::engine
