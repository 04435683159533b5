// A queue that keeps its memory.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace peal {

/// First in, first out. Unlike std::deque, stops to allocate once it has been at its greatest
/// length. Cost: constant on average.
template <class T>
class Fifo {
 public:
  bool empty() const { return first_ == items_.size(); }
  void push(T item) {
    if (items_.size() == items_.capacity() && first_ > items_.size() / 2) drop_taken();
    items_.push_back(std::move(item));
  }
  /// Takes the first item. Not if empty.
  T pop() {
    T item = std::move(items_[first_]);
    if (++first_ == items_.size()) drop_taken();
    return item;
  }

  /// Not if empty.
  const T& front() const { return items_[first_]; }
  T& back() { return items_.back(); }

  auto begin() const { return items_.begin() + static_cast<std::ptrdiff_t>(first_); }
  auto end() const { return items_.end(); }

 private:
  void drop_taken() {
    items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }

  std::vector<T> items_;  // those before first_ were taken
  std::size_t first_ = 0;
};

}  // namespace peal
