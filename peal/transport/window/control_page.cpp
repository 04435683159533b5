#include "peal/transport/window/control_page.h"

#include <bit>

#include "peal/transport/window/futex.h"

namespace peal::transport {
namespace {

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::endian::native == std::endian::little, "futex_word takes the first half");

/// A futex is 32 bits wide. The lower half holds the sleeper's bit, and changes with every value
/// except for steps by multiples of 2^31.
const std::uint32_t& futex_word(const std::atomic<std::uint64_t>& word) {
  return *reinterpret_cast<const std::uint32_t*>(&word);
}

}  // namespace

void SleepableCounter::sleep(std::uint64_t announced, Deadline deadline) noexcept {
  // A writer that is killed between its exchange and its system call wakes no sleeper. So the sleep
  // is short.
  sleep_on(
      futex_word(word_), static_cast<std::uint32_t>(announced), deadline.within(kLongestSleep));
}

void SleepableCounter::interrupt() noexcept {
  word_.fetch_and(~kSleeper);
  wake();
}

void SleepableCounter::wake() noexcept { wake_sleepers(futex_word(word_)); }

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
