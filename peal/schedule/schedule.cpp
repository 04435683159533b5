#include "peal/schedule/schedule.h"

namespace peal::schedule {

bool Ranks::contains(Rank rank) const {
  const int distance = rank - first;
  if (stride == 0) return count > 0 && distance == 0;
  return distance % stride == 0 && distance / stride >= 0 && distance / stride < count;
}

}  // namespace peal::schedule
