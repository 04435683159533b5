// The IDX format, the format of MNIST and similar data sets: a magic number, big-endian sizes,
// bytes. The input is not trusted. Source: Y. LeCun, "The MNIST database", file formats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "peal/base/units.h"

namespace mnist {

/// An array of bytes of any dimensions, row-major.
struct Idx {
  std::vector<std::size_t> shape;
  std::vector<std::uint8_t> values;

  friend bool operator==(const Idx&, const Idx&) = default;
};

/// The largest size of a file, packed or unpacked. The largest file of the MNIST family has 550 MB.
inline constexpr peal::Bytes kLargestIdx = peal::Bytes(1 << 30);

/// Reads an IDX file of unsigned bytes.
/// Errors: usage (wrong magic number, another element type, truncated, extra bytes). Allocates
///   memory only after the sizes in the header have been checked against the number of bytes.
Idx parse_idx(std::span<const std::byte> bytes);

/// Reads a file, gzipped or plain; decides by the content.
/// Errors: those of parse_idx and gunzip, with the path; resource (the file cannot be read, or is
///   too large).
Idx read_idx(const std::filesystem::path& path);

}  // namespace mnist
