// The bytes of a message: integers in little-endian order, text after its length. A ByteReader
// reads what a ByteWriter wrote. On any other bytes it throws, and never reads beyond the end. Used
// by every protocol above sockets: the proof, the store, contacts, mail.
//
// A Packer and an Unpacker do the same with integers in an array of a fixed size, as the headers of
// operations and messages are. They allocate nothing and check nothing.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "peal/base/units.h"

namespace peal {

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

class ByteWriter {
 public:
  ByteWriter& put_u8(std::uint8_t value) { return put(value); }
  ByteWriter& put_u16(std::uint16_t value) { return put(value); }
  ByteWriter& put_u32(std::uint32_t value) { return put(value); }
  ByteWriter& put_u64(std::uint64_t value) { return put(value); }
  ByteWriter& put_i32(std::int32_t value) { return put(static_cast<std::uint32_t>(value)); }
  ByteWriter& put_i64(std::int64_t value) { return put(static_cast<std::uint64_t>(value)); }
  /// A u32 length, then the bytes. Throws Error(usage) for more than 4 GiB.
  ByteWriter& put_text(std::string_view text);
  /// Only the bytes, for data of a fixed size.
  ByteWriter& put_raw(std::string_view bytes);

  std::string_view view() const { return bytes_; }
  std::string take() && { return std::move(bytes_); }

 private:
  template <class Unsigned>
  ByteWriter& put(Unsigned value) {
    for (std::size_t i = 0; i < sizeof value; ++i) {
      bytes_.push_back(static_cast<char>(static_cast<std::uint8_t>(value >> (8 * i))));
    }
    return *this;
  }

  std::string bytes_;
};

/// Errors of every getter: mismatch, which says that `what` is malformed. Borrows the bytes.
class ByteReader {
 public:
  /// `what` is the message's name in errors, such as "store request".
  ByteReader(std::string_view bytes, std::string_view what) : bytes_(bytes), what_(what) {}

  std::uint8_t get_u8() { return get<std::uint8_t>(); }
  std::uint16_t get_u16() { return get<std::uint16_t>(); }
  std::uint32_t get_u32() { return get<std::uint32_t>(); }
  std::uint64_t get_u64() { return get<std::uint64_t>(); }
  std::int32_t get_i32() { return static_cast<std::int32_t>(get<std::uint32_t>()); }
  std::int64_t get_i64() { return static_cast<std::int64_t>(get<std::uint64_t>()); }
  /// Reads a text of put_text with at most `limit` bytes. Returns a view into the bytes.
  std::string_view get_text(Bytes limit);
  std::string_view get_raw(Bytes count);

  /// Throws unless all bytes were read: a longer message is malformed too.
  void finish() const;

 private:
  template <class Unsigned>
  Unsigned get() {
    const std::string_view raw = get_raw(Bytes(sizeof(Unsigned)));
    Unsigned value = 0;
    for (std::size_t i = 0; i < sizeof value; ++i) {
      value = static_cast<Unsigned>(value | static_cast<Unsigned>(static_cast<std::uint8_t>(raw[i]))
                                                << (8 * i));
    }
    return value;
  }

  std::string_view bytes_;
  std::string_view what_;
};

static_assert(std::endian::native == std::endian::little, "Packer copies integers as they are");

/// The caller provides enough bytes for all that it puts.
class Packer {
 public:
  explicit Packer(std::span<std::byte> out) : out_(out) {}

  template <class T>
  Packer& put(T value) {
    std::memcpy(out_.data(), &value, sizeof value);
    out_ = out_.subspan(sizeof value);
    return *this;
  }

 private:
  std::span<std::byte> out_;
};

/// The caller gets no more than there are bytes.
class Unpacker {
 public:
  explicit Unpacker(std::span<const std::byte> in) : in_(in) {}

  template <class T>
  T get() {
    T value;
    std::memcpy(&value, in_.data(), sizeof value);
    in_ = in_.subspan(sizeof value);
    return value;
  }

 private:
  std::span<const std::byte> in_;
};

}  // namespace peal
