// The records of a checked stream (checked_stream.h):
//
//   length       u32, little-endian, 1 to 64 KiB
//   head check   u32, the CRC-32 of (the record's number u64, length)
//   check        u32, the CRC-32 of (the record's number u64, length, payload)
//   payload
//
// The number counts the stream's records and is not sent. So a record that is lost, comes twice or
// comes out of order has a wrong check. The head check detects a damaged length at once. Without
// it, the reader could wait for bytes that never come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "peal/base/units.h"
#include "peal/net/pieces.h"

namespace peal::net {

/// The largest payload. A longer record would leave the L2 cache before it is checked.
inline constexpr Bytes kMostInRecord = 64_KiB;
inline constexpr Bytes kRecordHead(12);

class RecordWriter {
 public:
  /// Makes the next record from as much of `pieces` as fits. Empty if `pieces` is empty. Valid
  /// until the next call.
  std::span<const std::byte> seal(Pieces& pieces);

 private:
  std::vector<std::byte> record_;
  std::uint64_t number_ = 0;
};

/// Memory: one whole record, from the first call of `room` on.
class RecordReader {
 public:
  /// The buffer for the next bytes. Invalidates the buffer of the last call. Never empty after
  /// `take` has filled less than all of `into`.
  std::span<std::byte> room();
  /// Says that the first `size` bytes of the room were filled.
  void has_come(std::size_t size);

  /// Copies bytes of complete and correct records, and returns their number.
  /// Errors: peer_lost if a wrong record is next and no bytes before it are left; also in every
  /// later call. The error says which record is wrong, and how.
  std::size_t take(std::span<std::byte> into);
  /// Whether `take` would return bytes or throw.
  bool has_some() const;

 private:
  struct Head;

  std::span<const std::byte> come() const {
    return std::span(buffer_).subspan(begin_, end_ - begin_);
  }
  bool open_next();

  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0;  // from `begin_` to `end_`: bytes that have come and were not taken
  std::size_t end_ = 0;
  std::string_view flaw_;  // what is wrong with the record at the front
  std::size_t open_ = 0;   // the number of checked payload bytes from `begin_` on
  std::uint64_t number_ = 0;
};

}  // namespace peal::net
