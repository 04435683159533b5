// Fetches a cache line before it is needed.
#pragma once

namespace peal {

/// Fetches the line at `address` for writing, exclusively for this core. A hint, which never fails.
inline void prefetch_to_write(const void* address) noexcept {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));
#else
  __builtin_prefetch(address, 1);
#endif
}

}  // namespace peal
