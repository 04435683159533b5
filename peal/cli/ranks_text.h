// Ranks in the notices of `peal run`.
#pragma once

#include <string>

#include "peal/base/units.h"

namespace peal::cli {

/// "rank 2", "ranks 2 to 5". `count` is at least 1.
inline std::string ranks_text(Rank first, int count) {
  if (count == 1) return "rank " + std::to_string(first);
  return "ranks " + std::to_string(first) + " to " + std::to_string(first + count - 1);
}

}  // namespace peal::cli
