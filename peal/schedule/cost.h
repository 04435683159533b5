// The cost of one rank's part: messages, elements and signals.
#pragma once

#include <cstdint>

#include "peal/schedule/schedule.h"

namespace peal::schedule {

struct Cost {
  int messages = 0;          // that the rank sends
  Elements sent = {};        // in these messages
  Elements touched = {};     // that its moves read and write in memory
  std::int64_t signals = 0;  // that the rank gives

  friend bool operator==(const Cost&, const Cost&) = default;
};

/// Cost: linear in the steps.
Cost cost_of(const Part&);

/// The largest value of each field over all ranks.
Cost busiest(const Schedule&);

}  // namespace peal::schedule
