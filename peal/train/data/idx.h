// The IDX format, in which MNIST and its relatives come: a magic number, big-endian sizes, bytes.
// The bytes are not trusted. Source: Y. LeCun, "The MNIST database", file formats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "peal/base/units.h"

namespace peal::train::data {

/// An array of bytes of any dimensions, row-major.
struct Idx {
  std::vector<std::size_t> shape;
  std::vector<std::uint8_t> values;

  friend bool operator==(const Idx&, const Idx&) = default;
};

/// No file may be larger than this, packed or unpacked (the largest of the MNIST family has 550
/// MB).
inline constexpr Bytes kLargestIdx = 1_MiB * 1024;

/// Reads an IDX file of unsigned bytes.
/// Errors: usage (wrong magic number, another element type, truncated, bytes left over). Memory is
/// only taken once the sizes in the header have proved to fit the bytes that are there.
Idx parse_idx(std::span<const std::byte> bytes);

/// Reads a file, gzipped or plain (told by its content). Errors: those of parse_idx and gunzip,
/// with the path; resource (the file cannot be read, or is too large).
Idx read_idx(const std::filesystem::path& path);

}  // namespace peal::train::data
