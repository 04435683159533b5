// Memory that the ranks of one host share. Each rank has a counter, a notice of its current
// operation, a stage, and an arena for buffers that peers may access in place. A rank publishes its
// counter in turns: each operation has a cache line, and beside it a cell for a few bytes. The
// values of an operation stay until the operation kTurns later. The layout is the same for private
// memory (memory transport) and mapped memory (shm).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/units.h"
#include "peal/system/prefetch.h"
#include "peal/transport/window/control_page.h"
#include "peal/transport/window/location.h"

namespace peal::transport {

/// Where one rank's share of the window lies in this process.
/// All three are 64-byte aligned.
struct Segment {
  /// Window::kControlBytes, zeroed before any rank uses it.
  std::span<std::byte> control;
  std::span<std::byte> stage;
  /// Address space; only the committed part may be touched.
  std::span<std::byte> arena;
};

/// Threads: the functions for registered memory, and `wake_all`, from any; the rest from one at a
///   time.
class Window final {
 public:
  /// How many operations back a notice can still be read.
  static constexpr int kNotices = ControlPage::kNotices;
  /// How many turns have a line and a cell.
  static constexpr int kTurns = ControlPage::kTurns;
  static constexpr Bytes kCell{static_cast<std::int64_t>(TurnSlot::kCell)};
  static constexpr Bytes kControlBytes = 4_KiB;
  static_assert(sizeof(ControlPage) <= static_cast<std::size_t>(kControlBytes.value));

  /// `segments[i]` belongs to rank first + i of the group. These ranks are neighbours, and `self`
  /// is one of them. `arena_file` is mapped as this rank's arena from its beginning, and grows as
  /// memory is needed. `keep_alive` owns the file and the memory of the segments.
  Window(Rank self,
         Rank first,
         std::vector<Segment> segments,
         int arena_file,
         std::shared_ptr<void> keep_alive);

  /// The ranks of the window are first() to first() + ranks() - 1.
  Rank first() const { return first_; }
  int ranks() const { return static_cast<int>(pages_.size()); }
  bool reaches(Rank rank) const { return rank >= first_ && rank < first_ + ranks(); }

  /// The stage of a rank: scratch that all ranks of the window may read and write.
  std::span<std::byte> stage(Rank rank) const;

  // ---- counters: each has one writer, its rank, and only grows from turn to turn
  /// Two words of the engine that a rank publishes beside its counter.
  struct Remark {
    std::uint64_t check = 0;
    std::uint64_t place = 0;
  };
  /// Sets this rank's counter to `value`. A rank that sees the value also sees all earlier writes.
  /// Wakes sleepers.
  void signal(std::uint64_t turn, std::uint64_t value, const Remark& remark) {
    TurnSlot& own = slot(self_, turn);
    own.check.store(remark.check, std::memory_order_relaxed);
    own.place.store(remark.place, std::memory_order_release);
    own.counter.advance(value);
  }
  /// Fetches this rank's line of a turn back from its readers, because it will be written soon.
  void prepare(std::uint64_t turn) const { prefetch_to_write(&slot(self_, turn)); }
  /// Acquire-load of a rank's counter in a turn. The value is larger once the rank is kTurns
  /// further.
  std::uint64_t counter(Rank rank, std::uint64_t turn) const {
    return slot(rank, turn).counter.value();
  }
  /// What the rank last published there. The rank may be kTurns further, or about to be. If `check`
  /// has the value of this turn, `place` has too.
  Remark remark(Rank rank, std::uint64_t turn) const {
    const TurnSlot& theirs = slot(rank, turn);
    const std::uint64_t place = theirs.place.load(std::memory_order_acquire);
    return {theirs.check.load(std::memory_order_relaxed), place};
  }
  /// kCell bytes beside that counter. Its rank writes them and all others read them; aligned to 8.
  std::byte* cell(Rank rank, std::uint64_t turn) const { return slot(rank, turn).cell.data(); }
  /// The distance from a rank's cell of turn 0 to that of another turn.
  static std::ptrdiff_t cell_offset(std::uint64_t turn) {
    return static_cast<std::ptrdiff_t>(turn % kTurns * sizeof(TurnSlot));
  }
  /// Sleeps (futex) until the rank's counter in that turn is at least `value`, `wake_all` was
  /// called, or the deadline has passed. May return early for no reason. Spin before the call if
  /// the wait is short.
  void sleep_until(Rank rank, std::uint64_t turn, std::uint64_t value, Deadline deadline);
  /// Ends all sleeps of this rank after an error. Threads: any.
  void wake_all() noexcept;

  // ---- notices
  /// Publishes the operation that this rank is about to begin. `notice.sequence` grows by one each
  /// time.
  void post(const Notice& notice) {
    ControlPage& page = *pages_[index(self_)];
    page.line_of(notice.sequence).write(notice);
    page.posted.store(notice.sequence, std::memory_order_release);
  }
  /// The notice that `rank` posted with this sequence number. Empty if the rank has not come so
  /// far, or is kNotices further. Torn reads are impossible.
  std::optional<Notice> notice(Rank rank, std::uint64_t sequence) const;
  /// The last sequence number that `rank` posted.
  std::uint64_t posted(Rank rank) const;

  // ---- registered memory
  /// Allocates memory of this rank's arena, 64-byte aligned, zeroed before the first use. Throws
  /// resource.
  std::byte* allocate(Bytes size);
  /// Does nothing in a forked child, like `deregister_memory`: the parent still uses the memory.
  void deallocate(std::byte* memory) noexcept;
  /// Makes existing memory of the process part of this rank's arena in place, until it is
  /// deregistered. No thread may write to the memory during the call, nor free it before its
  /// deregistration. The whole pages inside it are remapped (own_pages.h). Memory without a whole
  /// page is only recorded, so that `deregister_memory` finds it by its address. Errors: as
  /// check_own_memory; usage (it overlaps registered memory), resource. The contents are
  ///   unchanged.
  void register_memory(std::span<std::byte> memory);
  /// Makes the memory registered at `memory` private again, with its contents. If that fails,
  /// because the process has no free descriptor or the system no free memory, the memory keeps its
  /// place in the arena for good.
  void deregister_memory(const std::byte* memory) noexcept;

  /// Where this rank's memory lies in the arena. Empty if it is not wholly inside one allocation or
  /// one registered piece.
  std::optional<Location> locate(const void* memory, Bytes size) const;
  /// Changes whenever memory is freed or registered: earlier results of `locate` may then be wrong.
  std::uint64_t generation() const;
  /// Withdraws all memory that this rank has offered in its arena, for good. A peer that reads
  /// there, and afterwards finds nothing withdrawn, has read valid bytes.
  void withdraw() noexcept;
  bool has_withdrawn(Rank rank) const noexcept;
  /// The address in this process of `size` bytes of a rank's arena; null if not all bytes lie
  /// inside the arena.
  std::byte* try_address(Rank rank, ArenaOffset offset, Bytes size) const noexcept;
  /// The same. Errors: bug (not all bytes lie inside the arena).
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
