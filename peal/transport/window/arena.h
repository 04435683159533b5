// Which parts of a range of memory are in use. It handles offsets only and touches no memory, so it
// works for memory of any kind.
#pragma once

#include <cstdint>
#include <map>

#include "peal/base/error.h"
#include "peal/base/units.h"

namespace peal::transport {

/// First fit in the order of addresses; free neighbours are merged. All offsets are aligned to
/// kAlignment.
/// Threads: one at a time.
/// Cost: O(log of the allocations), but `allocate` O(free pieces).
class Arena {
 public:
  static constexpr std::uint64_t kAlignment = 64;

  explicit Arena(Bytes capacity);

  /// The offset of a free stretch of at least `size` bytes; `size` may be 0. Throws
  /// Error(resource).
  std::uint64_t allocate(Bytes size);
  /// The same from the other end: the last free stretch whose offset is a multiple of `alignment`,
  /// which is a multiple of kAlignment.
  std::uint64_t allocate_last(Bytes size, std::uint64_t alignment);
  /// `offset` was returned by `allocate` and not deallocated since; other offsets are ignored.
  void deallocate(std::uint64_t offset) noexcept;
  /// Whether [offset, offset + size) lies within one allocation.
  bool holds(std::uint64_t offset, Bytes size) const;

 private:
  using Stretches = std::map<std::uint64_t, std::uint64_t>;  // begin -> end

  Error no_room_for(Bytes size) const;
  void take(Stretches::iterator stretch, std::uint64_t begin, std::uint64_t end);

  Bytes capacity_;
  Bytes in_use_;
  Stretches free_;
  Stretches used_;
};

}  // namespace peal::transport
