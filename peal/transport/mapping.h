// Address space with memory behind it, given back at the end. What the ranks of a host share lies
// in such mappings: of the process alone (memory/) or of a file without a name (shm/).
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "peal/base/units.h"

namespace peal::transport {

/// Pages that nobody touches cost nothing; untouched ones read as zero.
class Mapping {
 public:
  Mapping() = default;
  /// Both throw Error(resource).
  static Mapping anonymous(Bytes size);
  /// The first `size` bytes of a file, shared with whoever maps it too. They may reach beyond its
  /// end, but not be touched there.
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

/// Whether the process may have so much address space more at this moment.
bool can_map(Bytes size);

}  // namespace peal::transport
