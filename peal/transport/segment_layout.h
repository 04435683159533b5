// What one rank shares with the others of its host, and where it lies: the window's control page,
// the doorbells, the rings through which bytes come in, and the stage. memory/ and shm/ differ in
// who provides the memory.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "peal/base/units.h"
#include "peal/transport/doorbell.h"
#include "peal/transport/ring.h"

namespace peal::transport {

/// The two streams of a transport.
enum class ChannelKind : unsigned char { kData = 0, kMail = 1 };
inline constexpr std::array kChannelKinds = {ChannelKind::kData, ChannelKind::kMail};

/// A value, the same for all ranks of a host. The functions that take a segment want
/// size() bytes there, zeroed before anyone uses them and aligned to a page.
///
/// A page costs memory once a rank touches it. The parts that every group touches lie together: the
/// control page, then the doorbells and the headers of the rings (one page for up to 10 ranks). Of
/// the rings' bytes and the stage, operations touch only what they use.
struct SegmentLayout {
  int ranks = 1;  // that share memory
  Bytes data_ring = 256_KiB;
  /// Larger than a core's nearest caches: there the writer of a long message finds lines that the
  /// reader has let go of. Of 64 KiB to 1 MiB the fastest at every size. Touched only as it is
  /// used.
  Bytes mail_ring = 1_MiB;
  Bytes stage = 3_MiB;

  /// Rings rounded up to powers of two, and no larger than that those of one rank together take
  /// 16 MiB (but at least a page each); the stage rounded up to pages.
  SegmentLayout bounded() const;

  Bytes size() const;
  Bytes ring(ChannelKind kind) const { return kind == ChannelKind::kData ? data_ring : mail_ring; }

  std::span<std::byte> control_in(std::byte* segment) const;
  std::span<std::byte> stage_in(std::byte* segment) const;
  BellState& bell_in(std::byte* segment, ChannelKind kind) const;
  /// The ring through which bytes come in from the host's `from`th rank: its header, and its bytes.
  RingHeader& ring_header_in(std::byte* segment, ChannelKind kind, int from) const;
  std::byte* ring_in(std::byte* segment, ChannelKind kind, int from) const;
  /// The header and the bytes, for one end of the ring; `peer` is at the other end.
  RingMemory ring_memory_in(std::byte* segment, ChannelKind kind, int from, Rank peer) const;

  friend bool operator==(const SegmentLayout&, const SegmentLayout&) = default;
};

}  // namespace peal::transport
