#include "peal/transport/window/arena.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "peal/base/error.h"

namespace peal::transport {
namespace {

/// How many bytes an allocation of `size` occupies.
constexpr std::uint64_t rounded(Bytes size) {
  constexpr std::uint64_t kMask = Arena::kAlignment - 1;
  return (static_cast<std::uint64_t>(std::max<std::int64_t>(size.value, 1)) + kMask) & ~kMask;
}

}  // namespace

Arena::Arena(Bytes capacity) : capacity_(capacity) {
  const auto end = static_cast<std::uint64_t>(capacity.value) / kAlignment * kAlignment;
  if (end > 0) free_.emplace(0, end);
}

Error Arena::no_room_for(Bytes size) const {
  return Error(
      ErrorKind::kResource,
      fmt::format("cannot allocate {} bytes of shared memory: {} of {} bytes are in use, and "
                  "no free piece is large enough; release other memory of the group, or use "
                  "ordinary memory",
                  size.value,
                  in_use_.value,
                  capacity_.value));
}

std::uint64_t Arena::allocate(Bytes size) {
  const auto fits = [&](const auto& stretch) {
    return static_cast<std::int64_t>(stretch.second - stretch.first) >= size.value;
  };
  const auto found = std::find_if(free_.begin(), free_.end(), fits);
  if (size < 0_B || found == free_.end()) throw no_room_for(size);
  const std::uint64_t begin = found->first;
  take(found, begin, begin + rounded(size));
  return begin;
}

std::uint64_t Arena::allocate_last(Bytes size, std::uint64_t alignment) {
  if (size < 0_B) throw no_room_for(size);
  const std::uint64_t length = rounded(size);
  for (auto stretch = free_.rbegin(); stretch != free_.rend(); ++stretch) {
    if (stretch->second < length) continue;
    const std::uint64_t begin = (stretch->second - length) / alignment * alignment;
    if (begin < stretch->first) continue;
    take(std::prev(stretch.base()), begin, begin + length);
    return begin;
  }
  throw no_room_for(size);
}

/// Marks [begin, end) of a free stretch as used.
void Arena::take(Stretches::iterator stretch, std::uint64_t begin, std::uint64_t end) {
  const auto [free_begin, free_end] = *stretch;
  used_.emplace(begin, end);
  free_.erase(stretch);
  if (free_begin < begin) free_.emplace(free_begin, begin);
  if (end < free_end) free_.emplace(end, free_end);
  in_use_ += Bytes(static_cast<std::int64_t>(end - begin));
}

void Arena::deallocate(std::uint64_t offset) noexcept {
  const auto found = used_.find(offset);
  if (found == used_.end()) return;
  const std::uint64_t end = found->second;
  in_use_ -= Bytes(static_cast<std::int64_t>(end - offset));
  // The map node is reused, because this function must not allocate or throw.
  auto node = used_.extract(found);
  const auto next = free_.find(end);
  if (next != free_.end()) {
    node.mapped() = next->second;
    free_.erase(next);
  }
  const auto after = free_.lower_bound(offset);
  if (after != free_.begin() && std::prev(after)->second == offset) {
    std::prev(after)->second = node.mapped();
  } else {
    free_.insert(std::move(node));
  }
}

bool Arena::holds(std::uint64_t offset, Bytes size) const {
  const auto after = used_.upper_bound(offset);
  if (after == used_.begin() || size < 0_B) return false;
  const std::uint64_t end = std::prev(after)->second;
  return offset <= end && static_cast<std::uint64_t>(size.value) <= end - offset && offset < end;
}

}  // namespace peal::transport
