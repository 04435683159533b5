// One direction of a stream between two ranks of a host: a ring of bytes in memory that both reach,
// one writing, one reading, without locks. Used by ring_channel.h.
//
// Neither end trusts what the other leaves in the memory: its own position it keeps to itself, the
// other's it checks, so that a broken peer yields an error and never an access out of bounds.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "peal/base/units.h"
#include "peal/kernels/watched_copy.h"
#include "peal/transport/transport.h"

namespace peal::transport {

/// Zero in the beginning. Each side's position has a line of its own.
/// What both sides look at all the time and what hardly ever changes has another, which both keep.
struct RingHeader {
  /// The bytes of a short write lie here, too: whoever looks whether there is more has fetched them
  /// with the position, and needs no second line from the writer. Atomic words, so that a reader
  /// who comes at the wrong moment can tell; the same way as NoticeLine (control_page.h).
  struct Cell {
    static constexpr std::size_t kSize = 48;
    std::atomic<std::uint64_t> begin;  // the position of its first byte, plus 1
    std::array<std::atomic<std::uint64_t>, kSize / sizeof(std::uint64_t)> words;
  };

  alignas(64) std::atomic<std::uint64_t> written;  // bytes since the beginning
  Cell cell;                                       // of the last write that was short
  alignas(64) std::atomic<std::uint64_t> taken;
  alignas(64) std::atomic<std::uint32_t> writer_left;
  std::atomic<std::uint32_t> reader_left;
};

/// What both ends know of a ring. The header and the bytes lie apart, so that polling many empty
/// rings touches few pages.
struct RingMemory {
  RingHeader* header = nullptr;
  std::byte* data = nullptr;  // `capacity` bytes, 64-byte aligned
  Bytes capacity;             // a power of two
  Rank peer = 0;              // at the other end, for messages
};

/// Threads: `write` and `leave` from one at a time; the rest from any, at any time.
class RingWriter {
 public:
  explicit RingWriter(RingMemory memory);

  /// Appends as much as fits of the concatenated pieces. Throws Error(peer_lost) when the peer has
  /// spoilt the ring.
  Bytes write(std::span<const ConstPiece> pieces);
  bool has_space() const noexcept;
  bool reader_left() const noexcept { return header_->reader_left.load() != 0; }
  /// Nothing will be written any more.
  void leave() noexcept { header_->writer_left.store(1); }

 private:
  /// Room for `wanted` bytes, or for fewer if there is no more. Fetches the reader's line only
  /// then.
  std::uint64_t space(std::uint64_t wanted);
  void append(ConstPiece piece);
  /// Into the cell, too. For all of it there is room.
  void write_short(std::span<const ConstPiece> pieces, std::uint64_t size);
  void empty_cell();
  /// Another write of this size is likely: the reader has its lines yet.
  void prepare(std::uint64_t size);
  void publish();

  RingMemory memory_;
  RingHeader* header_;
  std::byte* data_;
  kernels::WatchedCopy copy_;
  std::uint64_t written_ = 0;
  std::uint64_t published_ = 0;
  std::uint64_t taken_ = 0;  // as last seen; the truth may be larger
  bool cell_is_empty_ = true;
};

/// Threads: as RingWriter.
class RingReader {
 public:
  explicit RingReader(RingMemory memory);

  struct Taken {
    Bytes bytes;
    bool told = false;  // the writer has been told of room, and may have slept until there is some
  };
  /// Takes what there is and fits. Throws Error(peer_lost) when the peer has spoilt the ring.
  Taken read(std::span<std::byte> into);
  bool has_data() const noexcept;
  /// True only if `has_data` is final, too: what it says after this said yes stays so.
  bool writer_left() const noexcept { return header_->writer_left.load() != 0; }
  /// Nothing will be read any more.
  void leave() noexcept { header_->reader_left.store(1); }

 private:
  /// Whether the cell holds the bytes from `taken` on, which are then in `into`.
  bool read_cell(std::uint64_t taken, std::span<std::byte> into) const;
  /// So much more was taken. Tells the writer once that is a good share of the ring: a full ring
  /// that is read empty is told of in any case. Returns whether it was.
  bool took(std::uint64_t size);

  RingMemory memory_;
  RingHeader* header_;
  const std::byte* data_;
  std::atomic<std::uint64_t> taken_ = 0;  // written by whoever reads
  std::uint64_t published_ = 0;
};

}  // namespace peal::transport
