// Where the tensors of a file lie in larger tensors, as in the files of torch's
// HuggingFaceStorageWriter: a JSON text in the file's metadata. Without LibTorch, so that it can be
// fuzzed. Used by the checkpoints.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace peal::train {

/// The first index of each tensor in the larger tensor, in each dimension, by name.
using ShardingInfo = std::map<std::string, std::vector<std::int64_t>>;

/// The key of the text in the metadata.
inline constexpr const char* kShardingInfoKey = "DCP_SHARDING_INFO";

/// Parses {"conv.weight": {"saved_offsets": [2, 0]}, ...}.
/// Errors: mismatch (not the expected JSON, a name twice, more than 64 dimensions).
ShardingInfo parse_sharding_info(std::string_view text);

/// The text. Errors: usage (a name that is not UTF-8).
std::string print_sharding_info(const ShardingInfo& info);

}  // namespace peal::train
