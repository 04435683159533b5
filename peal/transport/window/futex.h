// Sleeps on a word of memory that processes share, by Linux's futex. Used by counters
// (control_page.h) and doorbells (doorbell.h).
#pragma once

#include <chrono>
#include <cstdint>

#include "peal/base/clock.h"

namespace peal::transport {

/// The longest sleep of a thread that a peer must wake. The peer may be stopped or killed just
/// before it wakes the thread, so the thread must check again by itself.
inline constexpr auto kLongestSleep = std::chrono::milliseconds(100);

/// If the word is `value`, sleeps until `wake_sleepers` or the deadline. May return early.
void sleep_on(const std::uint32_t& word, std::uint32_t value, Deadline deadline) noexcept;

/// Wakes all threads that sleep on the word.
void wake_sleepers(const std::uint32_t& word) noexcept;

}  // namespace peal::transport
