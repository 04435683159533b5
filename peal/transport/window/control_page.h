// The words that a rank writes for the other ranks of its window: its counter with a cell beside
// it, and its notices. Used only by the window. All words except those of cells are atomics, so
// that a concurrent reader gets an old or a new value and can tell which.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>

#include "peal/base/clock.h"
#include "peal/base/units.h"

namespace peal::transport {

/// What a rank tells the others about the operation that it has entered. The 64 bytes belong to the
/// engine; the window only carries them.
struct Notice {
  std::uint64_t sequence = 0;  // 1 for the first operation of the group; 0 means none yet
  std::array<std::uint64_t, 7> body{};
};

/// A number that only grows. One writer changes it, and others may sleep until it does. The lowest
/// bit of the stored word says that a sleeper exists. The writer reads this bit in the exchange by
/// which it writes, and makes no system call without a sleeper.
class SleepableCounter {
 public:
  std::uint64_t value() const noexcept { return word_.load(std::memory_order_acquire) >> 1; }

  /// Called only by the writer.
  void advance(std::uint64_t value) noexcept {
    if ((word_.exchange(value << 1) & kSleeper) != 0) wake();
  }

  /// Announces that the caller is about to sleep; returns what to pass to `sleep`.
  std::uint64_t announce_sleep() noexcept { return word_.fetch_or(kSleeper) | kSleeper; }
  /// Returns once the counter is no longer `announced`, `interrupt` was called, or the deadline has
  /// passed.
  void sleep(std::uint64_t announced, Deadline deadline) noexcept;
  static std::uint64_t value_in(std::uint64_t announced) { return announced >> 1; }

  /// Ends all sleeps, current and announced.
  void interrupt() noexcept;

 private:
  static constexpr std::uint64_t kSleeper = 1;

  void wake() noexcept;

  std::atomic<std::uint64_t> word_;
};

/// One notice. The writer empties the line, then writes the body, then the sequence number. The
/// reader reads the body between two reads of the sequence number. Every access to the body is a
/// release or an acquire. So if a reader saw any newer word, its second read finds the line
/// emptied.
class NoticeLine {
 public:
  void write(const Notice& notice) noexcept {
    sequence_.store(0, std::memory_order_relaxed);
    for (std::size_t i = 0; i < body_.size(); ++i) {
      body_[i].store(notice.body[i], std::memory_order_release);
    }
    sequence_.store(notice.sequence, std::memory_order_release);
  }
  std::optional<Notice> read(std::uint64_t sequence) const noexcept;

 private:
  std::atomic<std::uint64_t> sequence_;
  std::array<std::atomic<std::uint64_t>, std::tuple_size_v<decltype(Notice::body)>> body_;
};

/// What a rank publishes in one turn. The first bytes of its payload share a cache line with the
/// counter, so that a rank that waits for the counter has fetched them too. CPUs fetch lines by
/// pairs: aligned to a pair, 64 to 256 bytes take a sixth less time.
struct alignas(128) TurnSlot {
  static constexpr std::size_t kCell = 360;

  SleepableCounter counter;
  std::atomic<std::uint64_t> check;
  std::atomic<std::uint64_t> place;
  std::array<std::byte, kCell> cell;
};
static_assert(sizeof(TurnSlot) == 6 * 64);

/// Lies in Segment::control, whose bytes are zero in the beginning.
struct ControlPage {
  static constexpr std::size_t kTurns = 8;
  static constexpr std::size_t kNotices = 8;

  std::array<TurnSlot, kTurns> turns;
  alignas(64) std::atomic<std::uint64_t> posted;
  std::atomic<std::uint32_t> withdrawn;
  struct alignas(64) Line : NoticeLine {};
  std::array<Line, kNotices> notices;

  TurnSlot& slot_of(std::uint64_t turn) { return turns[turn % kTurns]; }
  Line& line_of(std::uint64_t sequence) { return notices[sequence % kNotices]; }
};
static_assert(sizeof(ControlPage::Line) == 64);

}  // namespace peal::transport
