#include "peal/mail/message_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <new>
#include <utility>

namespace peal::mail {
namespace {

constexpr std::size_t kSmallestBlock = MessageMemory::kSmallestBlock;
/// Every block size is a multiple of this.
constexpr std::size_t kAlignment = 16;

/// The number of slabs in use for which one empty slab may be kept.
constexpr std::size_t kInUsePerSpare = 4;

bool is_block(std::size_t bytes, std::size_t alignment) {
  return bytes <= MessageMemory::kLargestBlock && alignment <= kAlignment;
}

struct SizeClass {
  std::size_t index = 0;
  std::size_t size = 0;
};

/// The smallest of the sizes 64, 80, 96, 112, 128, 160, 192 and so on that is large enough.
constexpr SizeClass size_class_of(std::size_t bytes) {
  if (bytes <= kSmallestBlock) return {0, kSmallestBlock};
  const std::size_t power = std::bit_floor(bytes - 1);
  const std::size_t step = power / 4;
  const std::size_t steps = (bytes - power + step - 1) / step;
  const auto doublings = static_cast<std::size_t>(std::countr_zero(power / kSmallestBlock));
  return {4 * doublings + steps, power + steps * step};
}

/// Maps a slab that begins at a multiple of its size.
void* map_slab() {
  constexpr std::size_t kSize = MessageMemory::kSlabSize;
  void* const mapping =
      ::mmap(nullptr, 2 * kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  const auto begin = reinterpret_cast<std::uintptr_t>(mapping);
  const std::size_t before = (kSize - begin % kSize) % kSize;
  auto* const slab = static_cast<std::byte*>(mapping) + before;
  if (before > 0) ::munmap(mapping, before);
  ::munmap(slab + kSize, kSize - before);
  return slab;
}

}  // namespace

/// The header at the beginning of a slab's memory.
struct alignas(kSmallestBlock) MessageMemory::Slab {
  std::size_t size_class = 0;
  std::size_t block_size = 0;
  std::size_t used = 0;    // number of blocks in use
  std::size_t fresh = 0;   // offset of the memory that was never a block
  void* freed = nullptr;   // the first of a list: each block holds the address of the next
  Slab* before = nullptr;  // in the list of slabs of this size with room
  Slab* after = nullptr;

  bool has_room() const { return freed != nullptr || fresh + block_size <= kSlabSize; }

  void* take() {
    ++used;
    if (freed != nullptr) return std::exchange(freed, *static_cast<void**>(freed));
    return reinterpret_cast<std::byte*>(this) + std::exchange(fresh, fresh + block_size);
  }
  void give_back(void* block) {
    --used;
    *static_cast<void**>(block) = std::exchange(freed, block);
  }
};

MessageMemory::~MessageMemory() {
  for (Slab* slab : spare_) ::munmap(slab, kSlabSize);
}

void* MessageMemory::do_allocate(std::size_t bytes, std::size_t alignment) {
  if (!is_block(bytes, alignment)) {
    return std::pmr::new_delete_resource()->allocate(bytes, alignment);
  }
  static_assert(size_class_of(kLargestBlock).index + 1 == kSizes);
  const SizeClass wanted = size_class_of(bytes);
  Slab* slab = with_room_[wanted.index];
  if (slab == nullptr) slab = add_slab(wanted.index, wanted.size);
  void* const block = slab->take();
  if (!slab->has_room()) unlink(slab);
  return block;
}

void MessageMemory::do_deallocate(void* block, std::size_t bytes, std::size_t alignment) {
  if (!is_block(bytes, alignment)) {
    return std::pmr::new_delete_resource()->deallocate(block, bytes, alignment);
  }
  const std::size_t offset = reinterpret_cast<std::uintptr_t>(block) % kSlabSize;
  auto* const slab = reinterpret_cast<Slab*>(static_cast<std::byte*>(block) - offset);
  const bool had_room = slab->has_room();
  slab->give_back(block);
  if (!had_room) link(slab);
  if (slab->used == 0) remove_slab(slab);
}

MessageMemory::Slab* MessageMemory::add_slab(std::size_t size_class, std::size_t block_size) {
  spare_.reserve(2 + (in_use_ + 1) / kInUsePerSpare);  // so that remove_slab cannot fail
  void* memory = nullptr;
  if (spare_.empty()) {
    memory = map_slab();
  } else {
    memory = spare_.back();
    spare_.pop_back();
  }
  auto* const slab =
      new (memory) Slab{.size_class = size_class, .block_size = block_size, .fresh = sizeof(Slab)};
  ++in_use_;
  link(slab);
  return slab;
}

void MessageMemory::remove_slab(Slab* slab) {
  unlink(slab);
  --in_use_;
  spare_.push_back(slab);
  for (; spare_.size() > 1 + in_use_ / kInUsePerSpare; spare_.pop_back()) {
    ::munmap(spare_.back(), kSlabSize);
  }
}

void MessageMemory::link(Slab* slab) {
  Slab*& first = with_room_[slab->size_class];
  slab->before = nullptr;
  slab->after = first;
  if (first != nullptr) first->before = slab;
  first = slab;
}

void MessageMemory::unlink(Slab* slab) {
  if (slab->after != nullptr) slab->after->before = slab->before;
  (slab->before != nullptr ? slab->before->after : with_room_[slab->size_class]) = slab->after;
}

}  // namespace peal::mail
