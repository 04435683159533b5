// Memory for messages that wait for their receives. A burst leaves many such messages, and the last
// one is received much later than the first. Memory from malloc would stay with the process,
// because its heap also holds other things. This memory comes from the system in slabs, and empty
// slabs return to the system. Used by the mailbox.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <memory_resource>
#include <vector>

#include "peal/base/units.h"

namespace peal::mail {

/// Blocks of up to `kLargestBlock` lie in slabs, one size in each slab. Larger blocks come from
/// `new`. A slab returns to the system when none of its blocks is in use. A few empty slabs are
/// kept, in proportion to the slabs in use.
/// Cost: as malloc; at most a quarter of a block is unused.
/// Threads: one at a time.
class MessageMemory final : public std::pmr::memory_resource {
 public:
  static constexpr std::size_t kSmallestBlock = 64;
  static constexpr std::size_t kLargestBlock = std::size_t{16} << 10;
  static constexpr std::size_t kSlabSize = std::size_t{256} << 10;

  MessageMemory() = default;
  /// No block may be in use.
  ~MessageMemory() override;
  MessageMemory(const MessageMemory&) = delete;
  MessageMemory& operator=(const MessageMemory&) = delete;

  /// The memory taken from the system.
  Bytes mapped() const {
    return Bytes(static_cast<std::int64_t>((in_use_ + spare_.size()) * kSlabSize));
  }

 private:
  struct Slab;
  /// Four sizes from each power of two to the next.
  static constexpr std::size_t kSizes = 4 * std::countr_zero(kLargestBlock / kSmallestBlock) + 1;

  void* do_allocate(std::size_t bytes, std::size_t alignment) override;
  void do_deallocate(void* block, std::size_t bytes, std::size_t alignment) override;
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }

  Slab* add_slab(std::size_t size_class, std::size_t block_size);
  void remove_slab(Slab* slab);
  void link(Slab* slab);
  void unlink(Slab* slab);

  std::array<Slab*, kSizes> with_room_{};  // by size: the first of a list of slabs with room
  std::vector<Slab*> spare_;
  std::size_t in_use_ = 0;
};

}  // namespace peal::mail
