// The processor's cycle counter, for events that are recorded so often that a clock would cost more
// than the record. No decision depends on it: code that compares or waits uses Clock.
#pragma once

#include <chrono>
#include <cstdint>

namespace peal {

/// Grows evenly, and is the same on all cores of a host. Its unit depends on the machine. Pairs of
/// a cycle count and a clock reading give the unit (observe/flight_layout.h).
/// Cost: 10 ns.
inline std::uint64_t cycles() noexcept {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  std::uint64_t count;
  asm volatile("mrs %0, cntvct_el0" : "=r"(count));
  return count;
#else
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

}  // namespace peal
