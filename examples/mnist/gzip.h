// Unpacks gzipped data sets for the IDX reader. The input is not trusted.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "peal/base/units.h"

namespace mnist {

/// Whether the bytes begin like a gzip file.
bool is_gzip(std::span<const std::byte> bytes);

/// The content of a gzip file of one or more members (RFC 1952). Compares the checksums.
/// Errors: usage (truncated, corrupt, or more than `limit` when unpacked).
/// Cost: memory for the content, never more than `limit`.
std::vector<std::byte> gunzip(std::span<const std::byte> bytes, peal::Bytes limit);

}  // namespace mnist
