// The records that a checked stream (checked_stream.h) is made of:
//
//   length       u32, little-endian, 1 to 64 KiB
//   head check   u32, the CRC-32 of (the record's number u64, length)
//   check        u32, the CRC-32 of (the record's number u64, length, payload)
//   payload
//
// The number counts the stream's records and is not sent: one that is lost, comes twice or in
// another's place has a wrong check. The head has one of its own, so that a damaged length is
// noticed at once: whoever trusted it would wait for bytes that never come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "peal/base/units.h"
#include "peal/net/pieces.h"

namespace peal::net {

/// Of payload. Longer ones would leave the second cache before they are checked.
inline constexpr Bytes kMostInRecord = 64_KiB;
inline constexpr Bytes kRecordHead(12);

class RecordWriter {
 public:
  /// The next record, with as much of `pieces` as fits; nothing if there is nothing. Valid until
  /// the next call.
  std::span<const std::byte> seal(Pieces& pieces);

 private:
  std::vector<std::byte> record_;
  std::uint64_t number_ = 0;
};

/// Memory: one whole record, once anything has come.
class RecordReader {
 public:
  /// Where to put what comes next. Invalidates what was returned before. Never empty after `take`
  /// has returned less than was asked for.
  std::span<std::byte> room();
  /// So much of the room was filled.
  void has_come(std::size_t size);

  /// Copies the bytes of records that are here whole and right; returns how many.
  /// Errors, once nothing is left before the record that is wrong: peer_lost, which says which and
  /// how, now and ever after.
  std::size_t take(std::span<std::byte> into);
  /// Whether `take` has something to give or to complain of.
  bool has_some() const;

 private:
  struct Head;

  std::span<const std::byte> come() const {
    return std::span(buffer_).subspan(begin_, end_ - begin_);
  }
  bool open_next();

  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0;  // of the buffer: what has come and was not taken
  std::size_t end_ = 0;
  std::string_view flaw_;  // of the record at the front
  std::size_t open_ = 0;   // so many bytes from `begin_` are payload that was found right
  std::uint64_t number_ = 0;
};

}  // namespace peal::net
