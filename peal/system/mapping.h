// Address space with memory behind it, unmapped at the end: private to a process, or of a file that
// processes of one host share (shared_file.h).
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "peal/base/units.h"

namespace peal {

/// Untouched pages cost nothing and read as zero.
class Mapping {
 public:
  Mapping() = default;
  /// Both throw Error(resource).
  static Mapping anonymous(Bytes size);
  /// The first `size` bytes of a file, shared with all processes that map it. They may reach beyond
  /// the end of the file, but must not be touched there.
  static Mapping of_file(int fd, Bytes size);

  Mapping(Mapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();

  std::span<std::byte> bytes() const { return bytes_; }

 private:
  explicit Mapping(std::span<std::byte> bytes) : bytes_(bytes) {}

  std::span<std::byte> bytes_;
};

/// Whether the process can map `size` more bytes of address space now.
bool can_map(Bytes size);

}  // namespace peal
