// Private memory of a process before any of it is shared, and checks that its contents are
// unchanged.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <span>

#include "peal/transport/window/own_pages.h"

namespace peal::transport::testing {

inline std::byte value_at(std::size_t index) {
  return static_cast<std::byte>(index * 7 + index / 251);
}

inline void fill(std::span<std::byte> memory) {
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = value_at(i);
}

/// How many bytes differ from those that `fill` wrote.
inline int damage(std::span<const std::byte> memory) {
  int wrong = 0;
  for (std::size_t i = 0; i < memory.size(); ++i) wrong += memory[i] != value_at(i);
  return wrong;
}

inline std::size_t page() { return static_cast<std::size_t>(page_size().value); }

/// Whole pages of private memory.
inline std::span<std::byte> map_private(std::size_t size, int rights = PROT_READ | PROT_WRITE) {
  void* const memory = ::mmap(nullptr, size, rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return {static_cast<std::byte*>(memory), size};
}

inline void unmap(std::span<std::byte> memory) { ::munmap(memory.data(), memory.size()); }

}  // namespace peal::transport::testing
