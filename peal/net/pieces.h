// Concatenated pieces of memory that are consumed from the front. Streams cut their records from
// these.
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

  /// The rest of the first piece; empty if nothing is left.
  std::span<const std::byte> front() const {
    return rest_.empty() ? std::span<const std::byte>() : rest_.front().subspan(done_);
  }

  /// Drops `size` bytes, at most the size of `front`.
  void drop(std::size_t size) {
    done_ += size;
    settle();
  }

  /// Copies to `into` as many bytes as exist and fit, drops them, and returns their number.
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
  /// Skips empty pieces, so that the front has at least one byte.
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
