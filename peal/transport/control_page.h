// What a rank writes for the others of its window: its counter with a cell beside it, and its
// notices. Used by the window alone. All words but those of cells are atomics, so that a reader who
// comes at the wrong moment reads an old or a new value, and can tell.
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

/// What a rank tells the others of the operation that it has entered. 64 bytes of the engine's own,
/// which the window only carries.
struct Notice {
  std::uint64_t sequence = 0;  // 1 for the first operation of the group; 0 means none yet
  std::array<std::uint64_t, 7> body{};
};

/// A number that only grows, with one writer, for which others may sleep. Its lowest bit says that
/// somebody does: the writer learns that from the exchange by which it writes, and makes no system
/// call where nobody sleeps.
class SleepableCounter {
 public:
  std::uint64_t value() const noexcept { return word_.load(std::memory_order_acquire) >> 1; }

  /// By the writer alone.
  void advance(std::uint64_t value) noexcept {
    if ((word_.exchange(value << 1) & kSleeper) != 0) wake();
  }

  /// Says that somebody is about to sleep; returns what to pass to `sleep`.
  std::uint64_t announce_sleep() noexcept { return word_.fetch_or(kSleeper) | kSleeper; }
  /// Returns once the counter is not `announced` any more, it was stirred, or the deadline.
  void sleep(std::uint64_t announced, Deadline deadline) noexcept;
  static std::uint64_t value_in(std::uint64_t announced) { return announced >> 1; }

  /// Makes all who sleep return, and all who have announced to.
  void stir() noexcept;

 private:
  static constexpr std::uint64_t kSleeper = 1;

  void wake() noexcept;

  std::atomic<std::uint64_t> word_;
};

/// One notice. The writer empties the line, writes the body and then the sequence number; the
/// reader reads the body between two looks at the sequence number. Every access to the body is a
/// release or an acquire, so that the second look of a reader who saw any newer word finds the line
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

/// What a rank says in one turn. The first bytes of its payload are in the counter's line, so that
/// who waits for the one has fetched the other. CPUs fetch lines by pairs where they can: aligned
/// to a pair, 64 to 256 bytes take a sixth less time.
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
