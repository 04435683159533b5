// Which memory of a process is registered with a window, and where it lies in the window's arena.
// Only places: own_pages.h moves the pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "peal/base/units.h"
#include "peal/transport/window/location.h"

namespace peal::transport {

/// A piece of registered memory. In the arena it occupies all pages that it touches, at the same
/// place in the first page. A piece without a whole page has no place in the arena.
struct RegisteredPiece {
  std::span<std::byte> memory;
  std::uint64_t arena_offset = 0;  // of the page in which it begins

  /// The whole pages inside, which belong to the arena.
  std::span<std::byte> pages() const;
  std::uint64_t pages_offset() const;
  /// How many bytes of the arena it occupies.
  Bytes arena_size() const;
  /// The location of `size` bytes from `part` on, inside the memory.
  Location locate(const std::byte* part, Bytes size) const;
};

/// Threads: one at a time. Cost: O(log of the pieces).
class RegisteredPieces {
  using Pieces = std::map<const std::byte*, RegisteredPiece>;  // by the address where they begin

 public:
  /// A piece that is not added yet. All its memory is allocated, so `add` cannot fail.
  using Entry = Pieces::node_type;
  static Entry entry_of(const RegisteredPiece& piece);

  /// Throws Error(usage) if any byte of the memory is registered already.
  void check_apart(std::span<const std::byte> memory) const;
  /// Adds a piece that overlaps no other. From now on it is located.
  void add(Entry piece) noexcept { pieces_.insert(std::move(piece)); }
  /// Removes and returns the piece that begins at `memory`.
  std::optional<RegisteredPiece> remove(const std::byte* memory) noexcept;
  /// Empty if [memory, memory + size) does not lie within one piece that has a place in the arena.
  std::optional<Location> locate(const std::byte* memory, Bytes size) const;

 private:
  Pieces pieces_;
};

}  // namespace peal::transport
