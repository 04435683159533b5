#include "peal/transport/control_page.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <bit>

#include <climits>

namespace peal::transport {
namespace {

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::endian::native == std::endian::little, "futex_word takes the first half");

/// A futex is 32 bits wide. The lower half holds the sleeper's bit and changes with every value,
/// but for steps by multiples of 2^31.
std::uint32_t* futex_word(std::atomic<std::uint64_t>& word) {
  return reinterpret_cast<std::uint32_t*>(&word);
}

/// steady_clock is CLOCK_MONOTONIC, the clock of FUTEX_WAIT_BITSET.
timespec to_timespec(TimePoint at) {
  const auto since = at.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
  return {seconds.count(), std::chrono::nanoseconds(since - seconds).count()};
}

}  // namespace

void SleepableCounter::sleep(std::uint64_t announced, Deadline deadline) noexcept {
  // A writer that is killed between its exchange and its system call wakes nobody, hence the limit.
  const timespec until = to_timespec(deadline.within(std::chrono::milliseconds(100)).at());
  ::syscall(SYS_futex,
            futex_word(word_),
            FUTEX_WAIT_BITSET,
            static_cast<std::uint32_t>(announced),
            &until,
            nullptr,
            FUTEX_BITSET_MATCH_ANY);
}

void SleepableCounter::stir() noexcept {
  word_.fetch_and(~kSleeper);
  wake();
}

void SleepableCounter::wake() noexcept {
  ::syscall(SYS_futex, futex_word(word_), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

std::optional<Notice> NoticeLine::read(std::uint64_t sequence) const noexcept {
  if (sequence_.load(std::memory_order_acquire) != sequence) return std::nullopt;
  Notice notice{sequence, {}};
  for (std::size_t i = 0; i < body_.size(); ++i) {
    notice.body[i] = body_[i].load(std::memory_order_acquire);
  }
  if (sequence_.load(std::memory_order_relaxed) != sequence) return std::nullopt;
  return notice;
}

}  // namespace peal::transport
