#include "mnist/idx.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/error.h"

#include "mnist/gzip.h"

namespace mnist {
namespace {

constexpr std::uint8_t kUnsignedBytes = 0x08;
constexpr std::size_t kMagicSize = 4;
constexpr std::size_t kSizeSize = 4;

[[noreturn]] void refuse_idx(const std::string& why) {
  throw peal::Error(peal::ErrorKind::kUsage, "not a valid IDX file: " + why);
}

std::size_t big_endian(std::span<const std::byte> word) {
  std::size_t value = 0;
  for (const std::byte byte : word) value = value << 8 | std::to_integer<std::size_t>(byte);
  return value;
}

std::vector<std::byte> read_file(const std::filesystem::path& path) {
  std::error_code failed;
  const auto size = std::filesystem::file_size(path, failed);
  if (failed) throw peal::system_error("cannot read", failed.value());
  if (size > static_cast<std::uintmax_t>(kLargestIdx.value)) {
    throw peal::Error(peal::ErrorKind::kResource,
                      fmt::format("{} bytes are too many for a data set", size));
  }
  std::vector<std::byte> bytes(size);
  std::ifstream file(path, std::ios::binary);
  if (!file) throw peal::system_error("cannot open", errno);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  return bytes;
}

}  // namespace

Idx parse_idx(std::span<const std::byte> bytes) {
  if (bytes.size() < kMagicSize) refuse_idx("it ends within the magic number");
  if (big_endian(bytes.first(2)) != 0) refuse_idx("the magic number does not begin with two zeros");
  const auto type = std::to_integer<std::uint8_t>(bytes[2]);
  if (type != kUnsignedBytes) {
    refuse_idx(fmt::format("elements have type 0x{:02x}, expected unsigned bytes (0x08)", type));
  }
  const std::size_t dimensions = std::to_integer<std::size_t>(bytes[3]);
  const std::size_t header = kMagicSize + dimensions * kSizeSize;
  if (dimensions == 0) refuse_idx("it has no dimensions");
  if (bytes.size() < header) refuse_idx("it ends within its sizes");

  const std::span<const std::byte> body = bytes.subspan(header);
  Idx idx;
  std::size_t elements = 1;
  for (std::size_t d = 0; d < dimensions; ++d) {
    const std::size_t extent = big_endian(bytes.subspan(kMagicSize + d * kSizeSize, kSizeSize));
    idx.shape.push_back(extent);
    if (extent != 0 && elements > body.size() / extent) {  // no overflow: the product never exceeds
      refuse_idx(fmt::format("its sizes {} need more than the {} bytes that follow",
                             fmt::join(idx.shape, " x "),
                             body.size()));
    }
    elements *= extent;
  }
  if (elements != body.size()) {
    refuse_idx(fmt::format("its sizes {} need {} bytes, but {} follow",
                           fmt::join(idx.shape, " x "),
                           elements,
                           body.size()));
  }
  idx.values.resize(elements);
  if (elements != 0) std::memcpy(idx.values.data(), body.data(), elements);
  return idx;
}

Idx read_idx(const std::filesystem::path& path) {
  try {
    const std::vector<std::byte> bytes = read_file(path);
    return is_gzip(bytes) ? parse_idx(gunzip(bytes, kLargestIdx)) : parse_idx(bytes);
  } catch (const peal::Error& error) {
    throw peal::Error(error.kind(), fmt::format("{}: {}", path.string(), error.message()));
  }
}

}  // namespace mnist
