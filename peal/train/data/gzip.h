// Data sets come gzipped. The IDX reader unpacks them here; the input is not trusted.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "peal/base/units.h"

namespace peal::train::data {

/// Whether the bytes begin as a gzip file does.
bool is_gzip(std::span<const std::byte> bytes);

/// The content of a gzip file of one or more members (RFC 1952), its checksums compared.
/// Errors: usage (truncated, corrupt, or more than `limit` when unpacked).
/// Cost: memory for the content, never more than `limit`.
std::vector<std::byte> gunzip(std::span<const std::byte> bytes, Bytes limit);

}  // namespace peal::train::data
