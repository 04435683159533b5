// Memory for objects that are made and destroyed again and again, such as one for each operation.
#pragma once

#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>

#include "peal/base/guarded.h"
#include "peal/system/per_process.h"

namespace peal {

/// Blocks of memory for objects of type T. A block that an object has left is kept for the next
/// object, for the life of the process: a program keeps as many blocks as it had objects at once.
/// Threads: any number at once. A forked child may release blocks of its parent.
template <class T>
class RecycledBlocks {
 public:
  /// Errors: std::bad_alloc.
  static void* take() {
    Free* const kept = blocks().with([](Free*& first) {
      return first == nullptr ? nullptr : std::exchange(first, first->next);
    });
    return kept != nullptr ? kept : ::operator new(kBytes, std::align_val_t(kAlignment));
  }
  static void put_back(void* block) noexcept {
    blocks().with([block](Free*& first) { first = new (block) Free{first}; });
  }

 private:
  struct Free {
    Free* next;
  };
  static constexpr std::size_t kBytes = std::max(sizeof(T), sizeof(Free));
  static constexpr std::size_t kAlignment = std::max(alignof(T), alignof(Free));

  static Guarded<Free*>& blocks() {
    static PerProcess<Guarded<Free*>> of_type;
    return of_type.get();
  }
};

/// An allocator over RecycledBlocks, for std::allocate_shared.
template <class T>
class RecyclingAllocator {
 public:
  using value_type = T;  // NOLINT(readability-identifier-naming): the standard asks for this name

  RecyclingAllocator() = default;
  template <class U>
  RecyclingAllocator(const RecyclingAllocator<U>&) {}  // NOLINT(google-explicit-constructor)

  T* allocate(std::size_t count) {
    if (count != 1) throw std::bad_alloc();
    return static_cast<T*>(RecycledBlocks<T>::take());
  }
  void deallocate(T* object, std::size_t) noexcept { RecycledBlocks<T>::put_back(object); }

  friend bool operator==(const RecyclingAllocator&, const RecyclingAllocator&) { return true; }
};

}  // namespace peal
