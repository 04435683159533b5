#include "peal/schedule/schedule.h"

namespace peal::schedule {

std::string_view name_of(Space space) {
  switch (space) {
    case Space::kInput:
      return "input";
    case Space::kOutput:
      return "output";
    case Space::kStage:
      return "stage";
    case Space::kWire:
      return "wire";
  }
  return "invalid";
}

bool Ranks::contains(Rank rank) const {
  const std::int64_t distance = std::int64_t{rank} - first;
  if (stride == 0) return count > 0 && distance == 0;
  return distance % stride == 0 && distance / stride >= 0 && distance / stride < count;
}

bool is_copy(const Move& move) {
  return move.from.size() == 1 && move.from[0].ranks.count == 1 && move.finish == Finish::kNo;
}

}  // namespace peal::schedule
