// What a checkpoint has, besides tensors, as texts by name: the metadata of training.safetensors.
// It also says how many tensors each file has, so that a missing file is noticed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "peal/base/units.h"
#include "peal/train/checkpoint/tensor_map.h"
#include "peal/train/checkpoint/values.h"
#include "peal/train/optim/optimizer_state.h"

namespace peal::train {

struct Manifest {
  std::int64_t step = 0;
  int ranks = 1;                                    // that saved it
  std::map<std::string, std::int64_t> models = {};  // the number of tensors
  struct Optimizer {
    std::int64_t tensors = 0;
    OptimizerState state = {};  // without the fields of parameters
  };
  std::map<std::string, Optimizer> optimizers = {};
  std::map<Rank, std::int64_t> rank_tensors = {};  // saved by each rank for itself
  Values values = {};
};

Metadata to_metadata(const Manifest& manifest);

/// Errors: mismatch (not the metadata of a checkpoint), unsupported (of a newer version).
Manifest parse_manifest(const Metadata& metadata);

/// Adds the parameters in the groups of `other`, which another rank has: a sharded optimizer has
/// groups with the parameters of its rank.
/// Errors: mismatch (an optimizer of `other` that `manifest` lacks, or with another algorithm or
///   number of groups).
void merge_groups(Manifest& manifest, const Manifest& other);

/// A manifest as bytes for other ranks, and back. Errors of decode: as parse_manifest.
std::string encode(const Manifest& manifest);
Manifest decode_manifest(std::string_view bytes);

/// Why the names of models and optimizers cannot be names of files; empty if they can. They are
/// letters, digits, - and _, all different, and not "training" or "ranks", which other files have.
std::string why_not_file_names(const Manifest& manifest);

}  // namespace peal::train
