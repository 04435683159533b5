#include "peal/transport/segment_layout.h"

#include <algorithm>
#include <bit>

#include "peal/transport/ring.h"
#include "peal/transport/window.h"

namespace peal::transport {
namespace {

// Control page, a page of doorbells, for each rank its two rings, the stage.
constexpr Bytes kPage = 4_KiB;
constexpr Bytes kBellsAt = Window::kControlBytes;
constexpr Bytes kRingsAt = kBellsAt + kPage;
constexpr Bytes kMostOfRings = 16_MiB;

Bytes whole_pages(Bytes size) {
  return Bytes((size.value + kPage.value - 1) / kPage.value * kPage.value);
}

Bytes power_of_two(Bytes wanted, Bytes most) {
  const auto size = std::bit_ceil(static_cast<std::uint64_t>(std::max(wanted, kPage).value));
  const auto limit = std::bit_floor(static_cast<std::uint64_t>(std::max(most, kPage).value));
  return Bytes(static_cast<std::int64_t>(std::min(size, limit)));
}

Bytes rings_of_one_rank(const SegmentLayout& layout) {
  return ring_size(layout.data_ring) + ring_size(layout.mail_ring);
}

}  // namespace

SegmentLayout SegmentLayout::bounded() const {
  SegmentLayout result = *this;
  const Bytes share = kMostOfRings / std::max(1, ranks - 1);
  result.data_ring = power_of_two(data_ring, share / 2);
  result.mail_ring = power_of_two(mail_ring, share / 4);
  result.stage = whole_pages(stage);
  return result;
}

Bytes SegmentLayout::size() const {
  return kRingsAt + whole_pages(rings_of_one_rank(*this) * ranks) + stage;
}

std::span<std::byte> SegmentLayout::control_in(std::byte* segment) const {
  return {segment, static_cast<std::size_t>(Window::kControlBytes.value)};
}

std::span<std::byte> SegmentLayout::stage_in(std::byte* segment) const {
  return {segment + (size() - stage).value, static_cast<std::size_t>(stage.value)};
}

BellState& SegmentLayout::bell_in(std::byte* segment, ChannelKind kind) const {
  return reinterpret_cast<BellState*>(segment + kBellsAt.value)[static_cast<std::size_t>(kind)];
}

std::byte* SegmentLayout::ring_in(std::byte* segment, ChannelKind kind, int from) const {
  const Bytes before = kind == ChannelKind::kData ? 0_B : ring_size(data_ring);
  return segment + (kRingsAt + rings_of_one_rank(*this) * from + before).value;
}

}  // namespace peal::transport
