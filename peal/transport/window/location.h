// Where in an arena the memory lies that peers may access in place. The values mean the same on all
// ranks.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

#include "peal/base/units.h"

namespace peal::transport {

/// A place in a rank's arena, in bytes from its beginning; the same number means the same place in
/// every process that maps the arena.
struct ArenaOffset {
  std::uint64_t value = 0;
  friend auto operator<=>(ArenaOffset, ArenaOffset) = default;
};

/// Where a piece of this rank's memory lies in its arena.
struct Location {
  ArenaOffset offset;
  /// How many bytes at its beginning and end share a page with other memory. These bytes are not in
  /// the arena; it holds a copy of them that `copy_edges` updates. Only memory that was registered
  /// in place has edges (registered_pieces.h). Each is less than a page.
  Bytes head = {};
  Bytes tail = {};

  bool has_edges() const { return head > Bytes(0) || tail > Bytes(0); }
};

/// Copies the head and the tail of a piece of `size` bytes from one of its two places to the other.
/// Equal bytes are not written, because other ranks may be reading them.
void copy_edges(const Location& location, Bytes size, const std::byte* from, std::byte* to);

}  // namespace peal::transport
