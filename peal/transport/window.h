// Memory that the ranks of one host share: for each rank a counter, a notice of the operation that
// it is in, a stage, and an arena for buffers that peers may touch in place. The layout is the same
// whether the memory is the process's own (memory transport) or mapped (shm); only who provides it
// differs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/units.h"

namespace peal::transport {

/// A place in a rank's arena, in bytes from its beginning; the same number means the same place in
/// every process that maps the arena.
struct ArenaOffset {
  std::uint64_t value = 0;
  friend auto operator<=>(ArenaOffset, ArenaOffset) = default;
};

/// What a rank tells the others of the operation that it has entered. 64 bytes of the engine's own,
/// which the window only carries.
struct Notice {
  std::uint64_t sequence = 0;  // 1 for the first operation of the group; 0 means none yet
  std::array<std::byte, 56> body{};
};

/// Where one rank's share of the window lies in this process.
/// All three are 64-byte aligned.
struct Segment {
  /// Window::kControlBytes, zeroed before any rank uses it.
  std::span<std::byte> control;
  std::span<std::byte> stage;
  /// Address space; the owner commits it as it allocates.
  std::span<std::byte> arena;
};

/// Threads: `allocate`, `deallocate` and `locate` from any; `wake_all` from any; the rest from one
/// at a time.
class Window final {
 public:
  /// How many operations back a notice can still be read.
  static constexpr int kNotices = 8;
  static constexpr Bytes kControlBytes = 4_KiB;

  /// Makes sure that the first `size` bytes of the own arena can be touched, here and by peers.
  /// Throws Error(resource) when the system has no more memory.
  using Commit = std::function<void(Bytes size)>;

  /// `segments[r]` belongs to rank r of the group; every rank of the group is on this host.
  /// `keep_alive` owns whatever the segments lie in.
  Window(Rank self, std::vector<Segment> segments, Commit commit, std::shared_ptr<void> keep_alive);

  int ranks() const;

  /// The stage of a rank: scratch that all ranks of the window may read and write.
  std::span<std::byte> stage(Rank rank) const;

  // ---- counters: each has one writer, its rank, and only grows
  /// The own counter becomes `value`; everything done before is visible to who sees it. Wakes
  /// sleepers.
  void signal(std::uint64_t value);
  /// Acquire-load of a rank's counter.
  std::uint64_t counter(Rank rank) const;
  /// Sleeps (futex) until the rank's counter is at least `value`, `wake_all` was called, or the
  /// deadline. The caller has spun before if it wanted to. May return early for no reason.
  void sleep_until(Rank rank, std::uint64_t value, Deadline deadline);
  /// Makes all sleepers of this rank return (from any thread): something went wrong.
  void wake_all() noexcept;

  // ---- notices
  /// Publishes what the own rank is about to do. `notice.sequence` grows by one each time.
  void post(const Notice& notice);
  /// The notice that `rank` posted with this sequence number, if it has come so far and not yet
  /// kNotices further; torn reads are impossible.
  std::optional<Notice> notice(Rank rank, std::uint64_t sequence) const;
  /// The last sequence number that `rank` posted.
  std::uint64_t posted(Rank rank) const;

  // ---- registered memory
  /// Memory of the own arena, 64-byte aligned, zeroed the first time it is used. Throws resource.
  std::byte* allocate(Bytes size);
  void deallocate(std::byte* memory) noexcept;
  /// Where memory of the own arena lies in it; nothing if it is not wholly inside an allocation.
  std::optional<ArenaOffset> locate(const void* memory, Bytes size) const;
  /// The same place in this process, of any rank's arena.
  std::byte* address(Rank rank, ArenaOffset offset) const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace peal::transport
