// The processor's own count of time, for what is recorded so often that asking a clock would cost
// more than the record. Nothing is decided by it: what has to be compared or waited for has Clock.
#pragma once

#include <chrono>
#include <cstdint>

namespace peal {

/// Grows evenly and is the same on all cores of a host; its unit is the machine's own matter, and
/// pairs of it with a clock say what it is (observe/flight_layout.h).
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
