#include "peal/transport/window/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace peal::transport {
namespace {

/// steady_clock is CLOCK_MONOTONIC, the clock of FUTEX_WAIT_BITSET.
timespec to_timespec(TimePoint at) {
  const auto since = at.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
  return {seconds.count(), std::chrono::nanoseconds(since - seconds).count()};
}

}  // namespace

void sleep_on(const std::uint32_t& word, std::uint32_t value, Deadline deadline) noexcept {
  const timespec until = to_timespec(deadline.at());
  ::syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, value, &until, nullptr, FUTEX_BITSET_MATCH_ANY);
}

void wake_sleepers(const std::uint32_t& word) noexcept {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace peal::transport
