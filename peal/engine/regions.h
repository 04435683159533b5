// The buffers of one operand as one: element 0 to size, wherever they lie.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "peal/base/units.h"

namespace peal::engine {

/// Memory from some element on, as far as it goes in one piece.
struct Extent {
  std::byte* data = nullptr;
  Elements count;
};

/// Borrows the memory. Cleared and filled again for each operation, so that nothing is allocated in
/// the steady state.
class Regions {
 public:
  void clear() {
    pieces_.clear();
    size_ = Elements(0);
  }

  void add(const void* data, Elements count) {
    if (count.value == 0) return;
    // An input is never written unless it is also an output: schedules are proved to keep to that.
    pieces_.push_back({const_cast<std::byte*>(static_cast<const std::byte*>(data)), size_});
    size_ += count;
  }

  Elements size() const { return size_; }
  bool is_one_piece() const { return pieces_.size() <= 1; }
  std::byte* data() const { return pieces_.empty() ? nullptr : pieces_.front().data; }

  /// From `offset` (below size) on; `element` is the size of one element.
  Extent at(Elements offset, Bytes element) const {
    std::size_t i = 0;
    if (pieces_.size() > 1) {
      const auto after =
          std::upper_bound(pieces_.begin(), pieces_.end(), offset, [](Elements o, const Piece& p) {
            return o < p.begin;
          });
      i = static_cast<std::size_t>(after - pieces_.begin()) - 1;
    }
    const Elements end = i + 1 < pieces_.size() ? pieces_[i + 1].begin : size_;
    return {pieces_[i].data + (offset - pieces_[i].begin).value * element.value, end - offset};
  }

 private:
  struct Piece {
    std::byte* data;
    Elements begin;
  };
  std::vector<Piece> pieces_;
  Elements size_;
};

}  // namespace peal::engine
