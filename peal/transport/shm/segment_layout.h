// The memory that one rank shares with the others of its host, and where its parts lie: the
// window's control page, the doorbells, the rings for incoming bytes, and the stage. memory/ and
// shm/ differ only in the source of the memory.
#pragma once

#include <cstddef>
#include <span>

#include "peal/base/units.h"
#include "peal/transport/channel_kind.h"
#include "peal/transport/shm/doorbell.h"
#include "peal/transport/shm/ring.h"

namespace peal::transport {

/// A value, the same for all ranks of a host. The functions that take a segment need size() bytes
/// there, zeroed before the first use and aligned to a page.
///
/// A page costs memory once a rank touches it. So the parts that every group touches lie together:
/// the control page, then the doorbells and the headers of the rings (one page for up to 10 ranks).
/// Of the rings' bytes and the stage, operations touch only the parts that they use.
struct SegmentLayout {
  int ranks = 1;  // that share memory
  Bytes data_ring = 256_KiB;
  /// Larger than a core's nearest caches, so that the writer of a long message finds lines that
  /// have left the reader's cache. Of the sizes from 64 KiB to 1 MiB, this one is the fastest for
  /// messages of every size. Only the used part is touched.
  Bytes mail_ring = 1_MiB;
  Bytes stage = 3_MiB;

  /// Rounds rings to powers of two and limits them: the rings of one rank take at most 16 MiB
  /// together, but at least a page each. Rounds the stage up to pages.
  SegmentLayout bounded() const;

  Bytes size() const;
  Bytes ring(ChannelKind kind) const { return kind == ChannelKind::kData ? data_ring : mail_ring; }

  std::span<std::byte> control_in(std::byte* segment) const;
  std::span<std::byte> stage_in(std::byte* segment) const;
  BellState& doorbell_in(std::byte* segment, ChannelKind kind) const;
  /// The ring of the bytes from the host's `from`th rank: its header, and its bytes.
  RingHeader& ring_header_in(std::byte* segment, ChannelKind kind, int from) const;
  std::byte* ring_in(std::byte* segment, ChannelKind kind, int from) const;
  /// The header and the bytes, for one end of the ring. `peer` is at the other end.
  RingMemory ring_memory_in(std::byte* segment, ChannelKind kind, int from, Rank peer) const;

  friend bool operator==(const SegmentLayout&, const SegmentLayout&) = default;
};

}  // namespace peal::transport
