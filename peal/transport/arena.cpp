#include "peal/transport/arena.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "peal/base/error.h"

namespace peal::transport {
namespace {

constexpr std::int64_t align_up(std::int64_t size) {
  constexpr std::int64_t kMask = Arena::kAlignment - 1;
  return (size + kMask) & ~kMask;
}

}  // namespace

Arena::Arena(Bytes capacity) : capacity_(capacity) {
  const auto end = static_cast<std::uint64_t>(capacity.value) / kAlignment * kAlignment;
  if (end > 0) free_.emplace(0, end);
}

std::uint64_t Arena::allocate(Bytes size) {
  const auto fits = [&](const auto& stretch) {
    return static_cast<std::int64_t>(stretch.second - stretch.first) >= size.value;
  };
  const auto found = std::find_if(free_.begin(), free_.end(), fits);
  if (size < 0_B || found == free_.end()) {
    throw Error(ErrorKind::kResource,
                fmt::format("no room for {} bytes of shared memory: {} of {} bytes are in use, and "
                            "no free piece is large enough",
                            size.value,
                            in_use_.value,
                            capacity_.value));
  }
  const auto [begin, end] = *found;
  const std::uint64_t split = begin + align_up(std::max<std::int64_t>(size.value, 1));
  used_.emplace(begin, split);
  free_.erase(found);
  if (split < end) free_.emplace(split, end);
  in_use_ += Bytes(static_cast<std::int64_t>(split - begin));
  return begin;
}

void Arena::deallocate(std::uint64_t offset) noexcept {
  const auto found = used_.find(offset);
  if (found == used_.end()) return;
  const std::uint64_t end = found->second;
  in_use_ -= Bytes(static_cast<std::int64_t>(end - offset));
  // The node is carried over, so that nothing is allocated where nothing may be thrown.
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
