// The system's sleep on a word of memory that processes share. Used by counters (control_page.h)
// and doorbells.
#pragma once

#include <cstdint>

#include "peal/base/clock.h"

namespace peal::transport {

/// Sleeps while the word is `value`, until `wake_sleepers`, or the deadline. May return early for
/// no reason.
void sleep_on(const std::uint32_t& word, std::uint32_t value, Deadline deadline) noexcept;

/// Wakes all that sleep on the word.
void wake_sleepers(const std::uint32_t& word) noexcept;

}  // namespace peal::transport
