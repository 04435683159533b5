// Concatenated pieces of memory, taken from the front a part at a time: what streams cut records
// from.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace peal::net {

/// Borrows the pieces.
class Pieces {
 public:
  explicit Pieces(std::span<const std::span<const std::byte>> pieces) : rest_(pieces) { settle(); }

  bool empty() const { return rest_.empty(); }

  /// What lies in one piece at the front; empty if nothing is left.
  std::span<const std::byte> front() const {
    return rest_.empty() ? std::span<const std::byte>() : rest_.front().subspan(done_);
  }

  /// Drops as much, at most what `front` has.
  void drop(std::size_t size) {
    done_ += size;
    settle();
  }

  /// Copies and drops as much as there is and fits; returns how much.
  std::size_t take(std::span<std::byte> into) {
    std::size_t taken = 0;
    while (taken < into.size() && !empty()) {
      const std::size_t size = std::min(into.size() - taken, front().size());
      std::copy_n(front().begin(), size, into.subspan(taken).begin());
      taken += size;
      drop(size);
    }
    return taken;
  }

 private:
  /// The front has at least a byte.
  void settle() {
    while (!rest_.empty() && done_ == rest_.front().size()) {
      rest_ = rest_.subspan(1);
      done_ = 0;
    }
  }

  std::span<const std::span<const std::byte>> rest_;
  std::size_t done_ = 0;  // of the front
};

}  // namespace peal::net
