// Tells the core that a thread polls.
#pragma once

namespace peal {

/// Costs up to 40 ns, in which a hyperthread of the same core runs faster.
inline void cpu_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace peal
