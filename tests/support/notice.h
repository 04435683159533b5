// How long survivors may take to notice that a peer is lost, stopped or in another operation.
#pragma once

#include <chrono>
#include <cstdlib>
#include <string>

namespace peal::testing {

/// PEAL_TEST_DRILL_NOTICE, in milliseconds. `scripts/drill` sets a second, as peal promises for a
/// machine without other load. Without the variable the limit only detects hangs: 300 s, even on a
/// busy machine.
inline std::chrono::milliseconds notice_limit() {
  const char* const text = std::getenv("PEAL_TEST_DRILL_NOTICE");
  return std::chrono::milliseconds(text != nullptr ? std::stol(text) : 300'000);
}

}  // namespace peal::testing
