// Integers side by side in bytes of a fixed size: headers of operations and of mail. Little-endian,
// as all machines that peal runs on are.
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>
#include <span>

namespace peal::engine {

static_assert(std::endian::native == std::endian::little, "the wire format is little-endian");

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

}  // namespace peal::engine
