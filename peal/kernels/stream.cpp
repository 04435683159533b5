// Copies past the caches, for Stores::kStreaming.

#include <algorithm>
#include <cstdint>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "peal/kernels/stream.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "peal/kernels/fold.h"

HWY_BEFORE_NAMESPACE();
namespace peal::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

void stream(const std::byte* from, std::byte* to, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

#else

/// Copies one line, from any address to an aligned one.
HWY_INLINE void stream_line(const std::byte* from, std::byte* to) {
  using D = hn::ScalableTag<std::uint8_t>;
  static_assert(kLine % hn::MaxLanes(D()) == 0);
  for (std::size_t at = 0; at < kLine; at += hn::MaxLanes(D())) {
    const auto v = hn::LoadU(D(), reinterpret_cast<const std::uint8_t*>(from + at));
    hn::Stream(v, D(), reinterpret_cast<std::uint8_t*>(to + at));
  }
}

void stream(const std::byte* from, std::byte* to, std::size_t bytes) {
  const std::size_t head = std::min(bytes, (0 - reinterpret_cast<std::uintptr_t>(to)) % kLine);
  if (head > 0) std::memcpy(to, from, head);
  std::size_t at = head;
  for (; bytes - at >= kLine; at += kLine) stream_line(from + at, to + at);
  if (at < bytes) std::memcpy(to + at, from + at, bytes - at);
}

#endif

Copy stream_here() { return stream; }

}  // namespace peal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace peal::kernels {

HWY_EXPORT(stream_here);

Copy streaming_copy() { return HWY_DYNAMIC_DISPATCH(stream_here)(); }

}  // namespace peal::kernels
#endif
