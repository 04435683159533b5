// The buffers of one operand as one sequence of elements, 0 to size, in any number of pieces.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "peal/base/units.h"

namespace peal::engine {

/// Memory from some element on, up to the end of its piece.
struct Extent {
  std::byte* data = nullptr;
  Elements count;
};

/// Borrows the memory. Cleared and filled again for each operation, so that repeated operations
/// allocate nothing.
class Regions {
 public:
  void clear() {
    first_ = nullptr;
    pieces_.clear();
    size_ = Elements(0);
  }

  void add(const void* data, Elements count) {
    if (count.value == 0) return;
    // Schedules are proved never to write an input, unless it is also an output.
    auto* const piece = const_cast<std::byte*>(static_cast<const std::byte*>(data));
    if (first_ == nullptr) {
      first_ = piece;
    } else {
      pieces_.push_back({piece, size_});
    }
    size_ += count;
  }

  Elements size() const { return size_; }
  bool is_one_piece() const { return pieces_.empty(); }
  std::byte* data() const { return first_; }

  /// The memory from `offset` (below size) on; `element` is the size of one element.
  Extent at(Elements offset, Bytes element) const {
    const auto after =
        std::upper_bound(pieces_.begin(), pieces_.end(), offset, [](Elements o, const Piece& p) {
          return o < p.begin;
        });
    const Elements end = after == pieces_.end() ? size_ : after->begin;
    const Piece piece = after == pieces_.begin() ? Piece{first_, Elements(0)} : *(after - 1);
    return {piece.data + (offset - piece.begin).value * element.value, end - offset};
  }

 private:
  struct Piece {
    std::byte* data;
    Elements begin;
  };
  std::byte* first_ = nullptr;
  std::vector<Piece> pieces_;  // all but the first
  Elements size_;
};

}  // namespace peal::engine
