// One direction of a stream between two ranks of a host: a ring of bytes in shared memory. One rank
// writes and one reads, without locks. Used by ring_channel.h.
//
// Neither end trusts the memory: each end keeps its own position in private memory and checks the
// other's. So a broken peer causes an error and never an access out of bounds.
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

/// Zero in the beginning. Each side's position has its own cache line. The flags that both sides
/// poll and that rarely change share another line, which both caches keep.
struct RingHeader {
  /// The bytes of a short write lie here, too: a reader that checks the position has fetched them
  /// with it, and needs no second line from the writer. The words are atomic, so that a reader can
  /// detect a write in progress; NoticeLine (control_page.h) does the same.
  struct Cell {
    static constexpr std::size_t kSize = 48;
    std::atomic<std::uint64_t> begin;  // the position of its first byte, plus 1
    std::array<std::atomic<std::uint64_t>, kSize / sizeof(std::uint64_t)> words;
  };

  alignas(64) std::atomic<std::uint64_t> written;  // bytes since the beginning
  Cell cell;                                       // of the last short write
  alignas(64) std::atomic<std::uint64_t> taken;
  alignas(64) std::atomic<std::uint32_t> writer_left;
  std::atomic<std::uint32_t> reader_left;
};

/// What both ends know of a ring. The header and the bytes are apart, so that polling many empty
/// rings touches few pages.
struct RingMemory {
  RingHeader* header = nullptr;
  std::byte* data = nullptr;  // `capacity` bytes, 64-byte aligned
  Bytes capacity;             // a power of two
  Rank peer = 0;              // the rank at the other end, for messages
};

/// Threads: `write` and `leave` from one at a time; all else from any, at any time.
class RingWriter {
 public:
  explicit RingWriter(RingMemory memory);

  /// Appends as many bytes of the concatenated pieces as fit. Throws Error(peer_lost) if the peer
  /// has corrupted the ring.
  Bytes write(std::span<const ConstPiece> pieces);
  bool has_space() const noexcept;
  bool reader_left() const noexcept { return header_->reader_left.load() != 0; }
  /// Announces that no more bytes will be written.
  void leave() noexcept { header_->writer_left.store(1); }

 private:
  /// The free space in bytes, which may exceed `wanted`. Reads the reader's position only if the
  /// known free space is less than `wanted`.
  std::uint64_t space(std::uint64_t wanted);
  void append(ConstPiece piece);
  /// Writes into the cell, too. The ring has room for all bytes.
  void write_short(std::span<const ConstPiece> pieces, std::uint64_t size);
  void empty_cell();
  /// Prefetches the lines for another write of this size, which is likely: the reader's cache still
  /// has them.
  void prepare(std::uint64_t size);
  void publish();

  RingMemory memory_;
  RingHeader* header_;
  std::byte* data_;
  kernels::WatchedCopy copy_;
  std::uint64_t written_ = 0;
  std::uint64_t published_ = 0;
  std::uint64_t taken_ = 0;  // as last seen; the true value may be larger
  bool cell_is_empty_ = true;
};

/// Threads: as RingWriter.
class RingReader {
 public:
  explicit RingReader(RingMemory memory);

  struct Taken {
    Bytes bytes;
    bool published = false;  // the room was published; the writer may be asleep and need a ring
  };
  /// Takes the bytes that are there and fit. Throws Error(peer_lost) if the peer has corrupted the
  /// ring.
  Taken read(std::span<std::byte> into);
  bool has_data() const noexcept;
  /// If this returns true, the writer has left, and a later `has_data` is final.
  bool writer_left() const noexcept { return header_->writer_left.load() != 0; }
  /// Announces that no more bytes will be read.
  void leave() noexcept { header_->reader_left.store(1); }

 private:
  /// Whether the cell holds the bytes from `taken` on; if so, copies them to `into`.
  bool read_cell(std::uint64_t taken, std::span<std::byte> into) const;
  /// Counts `size` more bytes as taken. Publishes the room once it is a good share of the ring, and
  /// always when a full ring becomes empty. Returns whether it published.
  bool took(std::uint64_t size);

  RingMemory memory_;
  RingHeader* header_;
  const std::byte* data_;
  std::atomic<std::uint64_t> taken_ = 0;  // written by the reading thread
  std::uint64_t published_ = 0;
};

}  // namespace peal::transport
