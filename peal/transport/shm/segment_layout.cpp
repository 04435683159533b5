#include "peal/transport/shm/segment_layout.h"

#include <algorithm>
#include <bit>

#include "peal/transport/window/window.h"

namespace peal::transport {
namespace {

// Control page; doorbells and the headers of all rings; two rings for each rank; the stage.
constexpr Bytes kPage = 4_KiB;
constexpr Bytes kBellsAt = Window::kControlBytes;
constexpr Bytes kHeadersAt = kBellsAt + Bytes(sizeof(BellState) * kChannelKinds.size());
constexpr Bytes kHeader = Bytes(sizeof(RingHeader));
constexpr Bytes kMostOfRings = 16_MiB;

Bytes whole_pages(Bytes size) {
  return Bytes((size.value + kPage.value - 1) / kPage.value * kPage.value);
}

Bytes power_of_two(Bytes wanted, Bytes most) {
  const auto size = std::bit_ceil(static_cast<std::uint64_t>(std::max(wanted, kPage).value));
  const auto limit = std::bit_floor(static_cast<std::uint64_t>(std::max(most, kPage).value));
  return Bytes(static_cast<std::int64_t>(std::min(size, limit)));
}

Bytes rings_of_one_rank(const SegmentLayout& layout) { return layout.data_ring + layout.mail_ring; }

Bytes rings_at(const SegmentLayout& layout) {
  return whole_pages(kHeadersAt + kHeader * kChannelKinds.size() * layout.ranks);
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
  return rings_at(*this) + rings_of_one_rank(*this) * ranks + stage;
}

std::span<std::byte> SegmentLayout::control_in(std::byte* segment) const {
  return {segment, static_cast<std::size_t>(Window::kControlBytes.value)};
}

std::span<std::byte> SegmentLayout::stage_in(std::byte* segment) const {
  return {segment + (size() - stage).value, static_cast<std::size_t>(stage.value)};
}

BellState& SegmentLayout::doorbell_in(std::byte* segment, ChannelKind kind) const {
  return reinterpret_cast<BellState*>(segment + kBellsAt.value)[static_cast<std::size_t>(kind)];
}

RingHeader& SegmentLayout::ring_header_in(std::byte* segment, ChannelKind kind, int from) const {
  const std::size_t index =
      static_cast<std::size_t>(from) * kChannelKinds.size() + static_cast<std::size_t>(kind);
  return reinterpret_cast<RingHeader*>(segment + kHeadersAt.value)[index];
}

std::byte* SegmentLayout::ring_in(std::byte* segment, ChannelKind kind, int from) const {
  const Bytes before = kind == ChannelKind::kData ? 0_B : data_ring;
  return segment + (rings_at(*this) + rings_of_one_rank(*this) * from + before).value;
}

RingMemory SegmentLayout::ring_memory_in(std::byte* segment,
                                         ChannelKind kind,
                                         int from,
                                         Rank peer) const {
  return {.header = &ring_header_in(segment, kind, from),
          .data = ring_in(segment, kind, from),
          .capacity = ring(kind),
          .peer = peer};
}

}  // namespace peal::transport
