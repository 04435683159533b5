// Which memory of a process is registered with a window, and where in the window's arena it lies.
// Only places: own_pages.h moves the pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "peal/base/units.h"
#include "peal/transport/location.h"

namespace peal::transport {

/// In the arena it takes all the pages that it touches, and keeps its place in the first of them;
/// none where it has no whole page.
struct AdoptedPiece {
  std::span<std::byte> memory;
  std::uint64_t arena_offset = 0;  // of the page in which it begins

  /// The whole pages inside, which are the arena's.
  std::span<std::byte> pages() const;
  std::uint64_t pages_offset() const;
  /// What it takes in the arena.
  Bytes arena_size() const;
  /// Of so many bytes from `part` on, inside the memory.
  Location locate(const std::byte* part, Bytes size) const;
};

/// Threads: one at a time. Cost: O(log of the pieces).
class Adopted {
  using Pieces = std::map<const std::byte*, AdoptedPiece>;  // by where they begin

 public:
  /// A piece on its way in, which has all the memory that it takes.
  using Entry = Pieces::node_type;
  static Entry entry_of(const AdoptedPiece& piece);

  /// Throws Error(usage) if some of the memory is adopted already, if only its first or last bytes.
  void check_apart(std::span<const std::byte> memory) const;
  /// A piece that is apart from all others. From now on it is located.
  void add(Entry piece) noexcept { pieces_.insert(std::move(piece)); }
  /// The piece that begins at `memory`, which is not among them any more.
  std::optional<AdoptedPiece> remove(const std::byte* memory) noexcept;
  /// Nothing if [memory, memory + size) does not lie within one piece that has a place in the
  /// arena.
  std::optional<Location> locate(const std::byte* memory, Bytes size) const;

 private:
  Pieces pieces_;
};

}  // namespace peal::transport
