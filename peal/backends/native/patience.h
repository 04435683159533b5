// How a thread waits for something that is usually near: it polls, then yields, then sleeps. Where
// ranks share cores it does not spin: that would only keep from the core the peer that it waits
// for.
#pragma once

#include <sched.h>

#include <cstdint>

namespace peal::native {

enum class Cores : std::uint8_t {
  kOwn,     // a core for each thread that polls: spinning costs nobody anything
  kShared,  // whoever is waited for may need this very core
};

class Patience {
 public:
  explicit Patience(Cores cores) : spins_(cores == Cores::kOwn ? kSpins : 0) {}

  /// Something moved: start over.
  void renew() { polls_ = 0; }

  /// Waits for a moment; returns false when it is time to sleep instead.
  bool wait() {
    ++polls_;
    if (polls_ <= spins_) {
      if (polls_ > kEager) relax();
    } else if (polls_ <= spins_ + kYields) {
      ::sched_yield();
    } else {
      return false;
    }
    return true;
  }

 private:
  /// Polls without a pause: less than a microsecond, in which most small operations end. A pause
  /// takes up to 40 ns, a fifth of such an operation.
  static constexpr int kEager = 100;
  static constexpr int kSpins = 4000;  // some 100 us
  static constexpr int kYields = 100;

  static void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  int spins_;
  int polls_ = 0;
};

/// For what a loop that goes round too fast for it is to do now and then, as asking for the time.
class Seldom {
 public:
  bool is_due() { return ++asked_ % kEvery == 0; }

 private:
  static constexpr std::uint32_t kEvery = 256;
  std::uint32_t asked_ = 0;
};

}  // namespace peal::native
