// Sleeps on a word of memory that processes share, by Linux's futex. Used by counters
// (control_page.h) and doorbells.
#pragma once

#include <cstdint>

#include "peal/base/clock.h"

namespace peal::transport {

/// If the word is `value`, sleeps until `wake_sleepers` or the deadline. May return early.
void sleep_on(const std::uint32_t& word, std::uint32_t value, Deadline deadline) noexcept;

/// Wakes all threads that sleep on the word.
void wake_sleepers(const std::uint32_t& word) noexcept;

}  // namespace peal::transport
