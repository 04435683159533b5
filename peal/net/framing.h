// Bytes of a message: integers little-endian, text behind its length. What a Writer wrote a Reader
// reads back; a Reader of anything else throws and never looks beyond the end. Used by every
// protocol above sockets: the proof, the store, contacts, mail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "peal/base/units.h"

namespace peal::net {

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

class Writer {
 public:
  Writer& put_u8(std::uint8_t value) { return put(value); }
  Writer& put_u16(std::uint16_t value) { return put(value); }
  Writer& put_u32(std::uint32_t value) { return put(value); }
  Writer& put_u64(std::uint64_t value) { return put(value); }
  Writer& put_i32(std::int32_t value) { return put(static_cast<std::uint32_t>(value)); }
  Writer& put_i64(std::int64_t value) { return put(static_cast<std::uint64_t>(value)); }
  /// A u32 length, then the bytes. Throws Error(usage) beyond 4 GiB.
  Writer& put_text(std::string_view text);
  /// The bytes alone: for what has a fixed size.
  Writer& put_raw(std::string_view bytes);

  std::string_view view() const { return bytes_; }
  std::string take() && { return std::move(bytes_); }

 private:
  template <class Unsigned>
  Writer& put(Unsigned value) {
    for (std::size_t i = 0; i < sizeof value; ++i) {
      bytes_.push_back(static_cast<char>(static_cast<std::uint8_t>(value >> (8 * i))));
    }
    return *this;
  }

  std::string bytes_;
};

/// Errors of every getter: mismatch, which names `what` is malformed. Borrows the bytes.
class Reader {
 public:
  /// `what` is the message's name in errors, as in "store request".
  Reader(std::string_view bytes, std::string_view what) : bytes_(bytes), what_(what) {}

  std::uint8_t get_u8() { return get<std::uint8_t>(); }
  std::uint16_t get_u16() { return get<std::uint16_t>(); }
  std::uint32_t get_u32() { return get<std::uint32_t>(); }
  std::uint64_t get_u64() { return get<std::uint64_t>(); }
  std::int32_t get_i32() { return static_cast<std::int32_t>(get<std::uint32_t>()); }
  std::int64_t get_i64() { return static_cast<std::int64_t>(get<std::uint64_t>()); }
  /// What put_text wrote, if it is at most `limit` long; a view into the bytes.
  std::string_view get_text(Bytes limit);
  std::string_view get_raw(Bytes count);

  /// Throws unless everything was read: a longer message is not ours either.
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

}  // namespace peal::net
