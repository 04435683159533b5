#include "peal/transport/window/location.h"

#include <cstring>

namespace peal::transport {

void copy_edges(const Location& location, Bytes size, const std::byte* from, std::byte* to) {
  const auto copy = [&](Bytes begin, Bytes count) {
    const auto n = static_cast<std::size_t>(count.value);
    if (n == 0 || std::memcmp(to + begin.value, from + begin.value, n) == 0) return;
    std::memcpy(to + begin.value, from + begin.value, n);
  };
  copy(0_B, location.head);
  copy(size - location.tail, location.tail);
}

}  // namespace peal::transport
