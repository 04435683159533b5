// Where memory that peers may touch in place lies, in words that mean the same to all of them.
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

/// Where a piece of the own rank's memory lies in its arena.
struct Location {
  ArenaOffset offset;
  /// So many bytes at its beginning and end share a page with other memory and are not in the
  /// arena, only a copy of them that `copy_edges` brings up to date: of memory that was adopted
  /// where it lay (adopted.h). Less than a page each.
  Bytes head = {};
  Bytes tail = {};

  bool has_edges() const { return head > Bytes(0) || tail > Bytes(0); }
};

/// Copies the head and the tail of a piece of `size` bytes from one place where it lies to the
/// other. What is equal already is not written: others may be reading it.
void copy_edges(const Location& location, Bytes size, const std::byte* from, std::byte* to);

}  // namespace peal::transport
