// Memory that the ranks of one host share: for each rank a counter, a notice of the operation that
// it is in, a stage, and an arena for buffers that peers may touch in place. A rank's counter is
// said in turns: each operation has its own line, and beside it a cell for a few bytes, so that
// what is said in one operation stands until the operation kTurns later. The layout is the same
// whether the memory is the process's own (memory transport) or mapped (shm); only who provides it
// differs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/prefetch.h"
#include "peal/base/units.h"
#include "peal/transport/control_page.h"
#include "peal/transport/location.h"

namespace peal::transport {

/// Where one rank's share of the window lies in this process.
/// All three are 64-byte aligned.
struct Segment {
  /// Window::kControlBytes, zeroed before any rank uses it.
  std::span<std::byte> control;
  std::span<std::byte> stage;
  /// Address space; only what is committed may be touched.
  std::span<std::byte> arena;
};

/// Threads: what is said of registered memory, and `wake_all`, from any; the rest from one at a
/// time.
class Window final {
 public:
  /// How many operations back a notice can still be read.
  static constexpr int kNotices = ControlPage::kNotices;
  /// How many turns have a line and a cell of their own.
  static constexpr int kTurns = ControlPage::kTurns;
  static constexpr Bytes kCell{static_cast<std::int64_t>(TurnSlot::kCell)};
  static constexpr Bytes kControlBytes = 4_KiB;
  static_assert(sizeof(ControlPage) <= static_cast<std::size_t>(kControlBytes.value));

  /// `segments[i]` belongs to rank first + i of the group: neighbours, of which `self` is one.
  /// `arena_file` is mapped as the own arena from its beginning, and grows as memory is needed.
  /// `keep_alive` owns it, and whatever the segments lie in.
  Window(Rank self,
         Rank first,
         std::vector<Segment> segments,
         int arena_file,
         std::shared_ptr<void> keep_alive);

  /// The ranks that it reaches: first() to first() + ranks() - 1. All others are none of its.
  Rank first() const { return first_; }
  int ranks() const { return static_cast<int>(pages_.size()); }
  bool reaches(Rank rank) const { return rank >= first_ && rank < first_ + ranks(); }

  /// The stage of a rank: scratch that all ranks of the window may read and write.
  std::span<std::byte> stage(Rank rank) const;

  // ---- counters: each has one writer, its rank, and only grows from turn to turn
  /// What a rank says beside its counter: two words of the engine's own.
  struct Remark {
    std::uint64_t check = 0;
    std::uint64_t place = 0;
  };
  /// The own counter becomes `value`; everything done before is visible to who sees it there. Wakes
  /// sleepers.
  void signal(std::uint64_t turn, std::uint64_t value, const Remark& remark) {
    TurnSlot& own = slot(self_, turn);
    own.check.store(remark.check, std::memory_order_relaxed);
    own.place.store(remark.place, std::memory_order_release);
    own.counter.advance(value);
  }
  /// The own line of a turn will be written soon: fetches it back from who has read it.
  void prepare(std::uint64_t turn) const { prefetch_to_write(&slot(self_, turn)); }
  /// Acquire-load of a rank's counter in a turn; larger once it is kTurns further.
  std::uint64_t counter(Rank rank, std::uint64_t turn) const {
    return slot(rank, turn).counter.value();
  }
  /// What the rank last said there. It may be kTurns further, or about to say so; where `check` is
  /// what it says in this turn, so is `place`.
  Remark remark(Rank rank, std::uint64_t turn) const {
    const TurnSlot& theirs = slot(rank, turn);
    const std::uint64_t place = theirs.place.load(std::memory_order_acquire);
    return {theirs.check.load(std::memory_order_relaxed), place};
  }
  /// kCell bytes beside that counter, for its rank to write and all others to read; aligned to 8.
  std::byte* cell(Rank rank, std::uint64_t turn) const { return slot(rank, turn).cell.data(); }
  /// How far from a rank's cell of turn 0 that of another turn lies.
  static std::ptrdiff_t cell_offset(std::uint64_t turn) {
    return static_cast<std::ptrdiff_t>(turn % kTurns * sizeof(TurnSlot));
  }
  /// Sleeps (futex) until the rank's counter in that turn is at least `value`, `wake_all` was
  /// called, or the deadline. The caller has spun before if it wanted to. May return early for no
  /// reason.
  void sleep_until(Rank rank, std::uint64_t turn, std::uint64_t value, Deadline deadline);
  /// Makes all sleepers of this rank return (from any thread): something went wrong.
  void wake_all() noexcept;

  // ---- notices
  /// Publishes what the own rank is about to do. `notice.sequence` grows by one each time.
  void post(const Notice& notice) {
    ControlPage& page = *pages_[index(self_)];
    page.line_of(notice.sequence).write(notice);
    page.posted.store(notice.sequence, std::memory_order_release);
  }
  /// The notice that `rank` posted with this sequence number, if it has come so far and not yet
  /// kNotices further; torn reads are impossible.
  std::optional<Notice> notice(Rank rank, std::uint64_t sequence) const;
  /// The last sequence number that `rank` posted.
  std::uint64_t posted(Rank rank) const;

  // ---- registered memory
  /// Memory of the own arena, 64-byte aligned, zeroed the first time it is used. Throws resource.
  std::byte* allocate(Bytes size);
  /// Does nothing in a forked child, as `release` does: the parent still uses the memory.
  void deallocate(std::byte* memory) noexcept;
  /// Makes memory that the process has already, as malloc gave it, part of the own arena where it
  /// lies, until it is released. Nobody may write to it during the call, nor free it before it is
  /// released. The whole pages inside it are remapped (own_pages.h); without any, it is only kept
  /// apart from what else is adopted, so that `release` knows by its address what is meant.
  /// Errors: as check_own_memory; usage (it overlaps what was adopted before), resource. The memory
  /// holds what it held.
  void adopt(std::span<std::byte> memory);
  /// What was adopted at `memory` becomes private memory again, with what it holds. Where that
  /// cannot be, for want of memory or of a descriptor, it stays in its place in the arena, for
  /// good.
  void release(const std::byte* memory) noexcept;

  /// Where own memory lies in the arena; nothing if it is not wholly inside one allocation or what
  /// was adopted at once.
  std::optional<Location> locate(const void* memory, Bytes size) const;
  /// Changes whenever memory is given back or adopted: what was located before may not be there any
  /// more, and what was not may be.
  std::uint64_t generation() const;
  /// The own rank gives back what it has offered to others in its arena, for good: whoever reads
  /// there and then still finds nothing withdrawn has read what was offered.
  void withdraw() noexcept;
  bool has_withdrawn(Rank rank) const noexcept;
  /// The address in this process of `size` bytes of a rank's arena; null if the bytes do not all
  /// lie inside the arena.
  std::byte* try_address(Rank rank, ArenaOffset offset, Bytes size) const noexcept;
  /// The same. Errors: bug (the bytes do not all lie inside the arena).
  std::byte* address(Rank rank, ArenaOffset offset, Bytes size) const;

 private:
  struct Impl;

  TurnSlot& slot(Rank rank, std::uint64_t turn) const { return pages_[index(rank)]->slot_of(turn); }
  std::size_t index(Rank rank) const { return static_cast<std::size_t>(rank - first_); }

  std::shared_ptr<Impl> impl_;
  Rank self_;
  Rank first_;
  std::vector<ControlPage*> pages_;  // of first_, first_ + 1, ...
};

}  // namespace peal::transport
