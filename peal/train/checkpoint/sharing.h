// Which rank writes which part of a checkpoint. Each rank knows the parts that all ranks have, and
// computes the same plan. A pure function; used by rank_files.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "peal/base/units.h"
#include "peal/train/formats/box.h"

namespace peal::train {

/// A part of a tensor in the memory of a rank.
struct OfferedPart {
  std::string file = {};  // "model"
  std::string name = {};
  std::string type = {};
  std::vector<std::int64_t> shape = {};  // of the whole tensor
  Box box = {};
  Bytes size = {};

  friend bool operator==(const OfferedPart&, const OfferedPart&) = default;
};

using OfferedParts = std::vector<OfferedPart>;

struct SharingPlan {
  /// For each rank, the indices of the parts that it writes, in its list.
  std::vector<std::vector<std::size_t>> writes = {};
  /// The number of tensors of each file.
  std::map<std::string, std::int64_t> tensors = {};
};

/// Each part is written by one of the ranks that have it. Large parts are assigned first, each to
/// the rank with the fewest bytes so far.
/// Errors: mismatch (ranks disagree about the type or shape of a tensor, or their parts do not make
///   up the tensor).
/// Cost: n log n for n parts of all ranks.
SharingPlan share_out(const std::vector<OfferedParts>& ranks);

/// A list as bytes for other ranks, and back. Errors of decode: mismatch.
std::string encode(const OfferedParts& parts);
OfferedParts decode_offered_parts(std::string_view bytes);

}  // namespace peal::train
