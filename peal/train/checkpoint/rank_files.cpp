#include "peal/train/checkpoint/rank_files.h"

#include <cstdio>
#include <utility>

#include "peal/base/error.h"
#include "peal/base/fnv.h"
#include "peal/train/checkpoint/manifest.h"
#include "peal/train/checkpoint/sharing.h"
#include "peal/train/checkpoint/tensor_file.h"

namespace peal::train {
namespace {

/// The tensors of each file, by the name of the file. Those of an optimizer are
/// "<parameter>.<field>".
using Files = std::map<std::string, TensorParts>;

Manifest manifest_of(const Checkpoint& checkpoint, int ranks) {
  Manifest manifest{.step = checkpoint.step, .ranks = ranks, .values = checkpoint.values};
  for (const auto& [name, parts] : checkpoint.models) manifest.models[name] = 0;
  for (const auto& [name, state] : checkpoint.optimizers) {
    manifest.optimizers[name].state = {.algorithm = state.algorithm, .groups = state.groups};
  }
  if (const std::string reason = why_not_file_names(manifest); !reason.empty()) {
    throw Error(ErrorKind::kUsage, reason);
  }
  return manifest;
}

Files files_of(const Checkpoint& checkpoint) {
  Files files = checkpoint.models;
  for (const auto& [name, state] : checkpoint.optimizers) {
    TensorParts& parts = files[name];
    for (const auto& [parameter, fields] : state.parameters) {
      for (const auto& [field, tensor] : fields) parts[parameter + "." + field] = tensor;
    }
  }
  for (const auto& [file, parts] : files) {
    for (const auto& [name, part] : parts) check_can_be_saved(name, part.data);
  }
  return files;
}

void set_tensor_counts(Manifest& manifest, const std::map<std::string, std::int64_t>& counts) {
  const auto count = [&](const std::string& name) {
    const auto found = counts.find(name);
    return found == counts.end() ? 0 : found->second;
  };
  for (auto& [name, tensors] : manifest.models) tensors = count(name);
  for (auto& [name, optimizer] : manifest.optimizers) optimizer.tensors = count(name);
}

// ---- rank 0 writes

/// A hash of the names of all tensors.
std::uint64_t hash_of_names(const Files& files) {
  std::string names;
  for (const auto& [file, parts] : files) {
    for (const auto& [name, part] : parts) names += file + '\0' + name + '\0';
  }
  return fnv(names);
}

/// Rank 0 must have all tensors; the others have the same, or pass none.
void require_same_names(const Ranks& ranks, const Files& files) {
  const std::string ours = std::to_string(hash_of_names(files));
  const std::string of_rank_0 = ranks.broadcast(ours);
  ranks.together([&] {
    bool has_tensors = false;
    for (const auto& [name, parts] : files) has_tensors |= !parts.empty();
    if (!has_tensors || ours == of_rank_0) return;
    throw Error(ErrorKind::kMismatch,
                "this rank and rank 0 have different tensors, so rank 0 cannot write the "
                "checkpoint alone: use Writers::kAllRanks");
  });
}

std::vector<RankFile> whole_files(const Files& files) {
  std::vector<RankFile> result;
  for (const auto& [file, parts] : files) {
    RankFile& one = result.emplace_back();
    one.path = file + ".safetensors";
    for (const auto& [name, part] : parts) {
      if (part.data.sizes() != part.shape) {
        throw Error(ErrorKind::kUsage,
                    "this rank has only a part of the tensor \"" + name +
                        "\", so rank 0 cannot write the checkpoint alone: use Writers::kAllRanks");
      }
      one.tensors[name] = part.data;
    }
  }
  return result;
}

std::map<std::string, std::int64_t> counts_of(const Files& files) {
  std::map<std::string, std::int64_t> counts;
  for (const auto& [name, parts] : files) counts[name] = std::ssize(parts);
  return counts;
}

// ---- all ranks write

OfferedParts offers_of(const Files& files) {
  OfferedParts offers;
  for (const auto& [file, parts] : files) {
    for (const auto& [name, part] : parts) {
      offers.push_back({.file = file,
                        .name = name,
                        .type = c10::toString(part.data.scalar_type()),
                        .shape = part.shape,
                        .box = {part.offsets, part.data.sizes().vec()},
                        .size = stored_size(part.data)});
    }
  }
  return offers;
}

/// "model/shard-00002-model-00001-of-00001.safetensors", as torch's HuggingFaceStorageWriter
std::string file_of_shard(const std::string& name, Rank rank) {
  char number[16];
  std::snprintf(number, sizeof number, "%05d", rank + 1);
  return name + "/shard-" + number + "-model-00001-of-00001.safetensors";
}

std::vector<RankFile> shard_files(Files& files,
                                  const OfferedParts& offers,
                                  const std::vector<std::size_t>& writes,
                                  Rank rank) {
  std::map<std::string, RankFile> result;
  for (const std::size_t index : writes) {
    const OfferedPart& offer = offers[index];
    TensorPart& part = files.at(offer.file).at(offer.name);
    RankFile& file = result[offer.file];
    file.path = file_of_shard(offer.file, rank);
    file.metadata = {{"DCP_VERSION", "1.0"}};
    file.tensors[offer.name] = part.data;
    file.offsets[offer.name] = part.offsets;
  }
  std::vector<RankFile> list;
  for (auto& [name, file] : result) list.push_back(std::move(file));
  return list;
}

}  // namespace

std::string file_of_rank(Rank rank) {
  char number[16];
  std::snprintf(number, sizeof number, "%05d", rank);
  return std::string("ranks/rank-") + number + ".safetensors";
}

std::vector<RankFile> rank_files(const Ranks& ranks,
                                 const Checkpoint& checkpoint,
                                 Writers writers) {
  Manifest manifest;
  Files files;
  ranks.together([&] {
    manifest = manifest_of(checkpoint, ranks.size());
    files = files_of(checkpoint);
    for (const auto& [name, tensor] : checkpoint.tensors) check_can_be_saved(name, tensor);
    for (const auto& [name, tensor] : checkpoint.rank_tensors) check_can_be_saved(name, tensor);
  });
  std::vector<RankFile> mine;
  if (writers == Writers::kRank0) {
    require_same_names(ranks, files);
    ranks.together([&] {
      if (ranks.rank() == 0) mine = whole_files(files);
    });
    set_tensor_counts(manifest, counts_of(files));
  } else {
    const OfferedParts offers = offers_of(files);
    std::vector<OfferedParts> all;
    for (const std::string& bytes : ranks.gather(encode(offers))) {
      all.push_back(decode_offered_parts(bytes));
    }
    const SharingPlan plan = share_out(all);  // throws on every rank or on none
    mine = shard_files(
        files, offers, plan.writes[static_cast<std::size_t>(ranks.rank())], ranks.rank());
    set_tensor_counts(manifest, plan.tensors);
  }
  if (ranks.rank() == 0) {
    mine.push_back({.path = "training.safetensors",
                    .tensors = checkpoint.tensors,
                    .metadata = to_metadata(manifest)});
  }
  if (!checkpoint.rank_tensors.empty()) {
    mine.push_back({.path = file_of_rank(ranks.rank()), .tensors = checkpoint.rank_tensors});
  }
  return mine;
}

}  // namespace peal::train
