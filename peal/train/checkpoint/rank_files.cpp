#include "peal/train/checkpoint/rank_files.h"

#include <cstdio>
#include <limits>
#include <set>
#include <utility>

#include "peal/base/error.h"
#include "peal/base/fnv.h"
#include "peal/base/serialize.h"
#include "peal/train/checkpoint/manifest.h"
#include "peal/train/checkpoint/sharing.h"
#include "peal/train/checkpoint/tensor_file.h"
#include "peal/train/formats/box.h"

namespace peal::train {
namespace {

struct Part {
  torch::Tensor data = {};
  Box box = {};
  std::vector<std::int64_t> shape = {};  // of the whole tensor
};

/// The tensors of each file, by the name of the file. Those of an optimizer are
/// "<parameter>.<field>".
using Files = std::map<std::string, std::map<std::string, Part>>;

Manifest manifest_of(const Checkpoint& checkpoint, int ranks) {
  Manifest manifest{.step = checkpoint.step, .ranks = ranks, .values = checkpoint.values};
  for (const auto& [name, tensors] : checkpoint.models) manifest.models[name] = 0;
  for (const auto& [name, state] : checkpoint.optimizers) {
    manifest.optimizers[name].state = {.algorithm = state.algorithm, .groups = state.groups};
  }
  if (const std::string reason = why_not_file_names(manifest); !reason.empty()) {
    throw Error(ErrorKind::kUsage, reason);
  }
  return manifest;
}

/// All of the tensor, unless `shard` says that it is a part.
Part part_of(const std::string& name, const torch::Tensor& tensor, const Shard* shard) {
  check_can_be_saved(name, tensor);
  const std::vector<std::int64_t> sizes = tensor.sizes().vec();
  if (shard == nullptr) return {tensor, whole_box(sizes), sizes};
  if (shard->offsets.size() != sizes.size() || shard->shape.size() != sizes.size()) {
    throw Error(ErrorKind::kUsage,
                "the shard of the tensor \"" + name + "\" has another number of dimensions");
  }
  return {tensor, {shard->offsets, sizes}, shard->shape};
}

Files files_of(const Checkpoint& checkpoint) {
  std::map<std::string, TensorMap> tensors = checkpoint.models;
  for (const auto& [name, state] : checkpoint.optimizers) {
    TensorMap& list = tensors[name];
    for (const auto& [parameter, fields] : state.parameters) {
      for (const auto& [field, tensor] : fields) list[parameter + "." + field] = tensor;
    }
  }
  auto shards = checkpoint.shards;
  Files files;
  for (const auto& [file, list] : tensors) {
    auto& parts = files[file];
    for (const auto& [name, tensor] : list) {
      const auto shard = shards[file].extract(name);
      parts[name] = part_of(name, tensor, shard.empty() ? nullptr : &shard.mapped());
    }
  }
  for (const auto& [file, rest] : shards) {
    if (rest.empty()) continue;
    throw Error(
        ErrorKind::kUsage,
        "there is a shard \"" + rest.begin()->first + "\" of \"" + file + "\", but no such tensor");
  }
  return files;
}

/// Writes the numbers of tensors into rank 0's manifest.
void set_tensor_counts(Manifest& manifest, const std::map<std::string, std::int64_t>& counts) {
  for (const auto& [name, count] : counts) {
    if (const auto model = manifest.models.find(name); model != manifest.models.end()) {
      model->second = count;
    } else if (const auto optimizer = manifest.optimizers.find(name);
               optimizer != manifest.optimizers.end()) {
      optimizer->second.tensors = count;
    } else {
      throw Error(
          ErrorKind::kMismatch,
          "other ranks have tensors of \"" + name +
              "\", but this rank has none: every rank needs the same models and optimizers");
    }
  }
}

/// The number of own tensors of each rank that has some, on every rank. Order: collective.
std::map<Rank, std::int64_t> rank_tensor_counts(const Ranks& ranks, const TensorMap& own) {
  std::map<Rank, std::int64_t> counts;
  Rank rank = 0;
  for (const std::string& text : ranks.gather(std::to_string(own.size()))) {
    if (const std::int64_t count = std::stoll(text); count > 0) counts[rank] = count;
    ++rank;
  }
  return counts;
}

// ---- rank 0 writes

/// A line for each file that has tensors: its name, and a hash of the names of the tensors.
std::set<std::string> lines_of_names(const Files& files) {
  std::set<std::string> lines;
  for (const auto& [file, parts] : files) {
    std::string names;
    for (const auto& [name, part] : parts) names += name + '\0';
    if (!parts.empty()) lines.insert(file + " " + std::to_string(fnv(names)) + "\n");
  }
  return lines;
}

/// Rank 0 must have all tensors. The other ranks have the same of a file, or none.
void require_same_names(const Ranks& ranks, const Files& files) {
  const std::set<std::string> ours = lines_of_names(files);
  std::string text;
  for (const std::string& line : ours) text += line;
  const std::string of_rank_0 = "\n" + ranks.broadcast(text);
  ranks.together([&] {
    for (const std::string& line : ours) {
      if (of_rank_0.find("\n" + line) != std::string::npos) continue;
      throw Error(ErrorKind::kMismatch,
                  "this rank and rank 0 have different tensors of \"" +
                      line.substr(0, line.find(' ')) +
                      "\", so rank 0 cannot write the checkpoint alone: use Writers::kAllRanks");
    }
  });
}

std::vector<RankFile> whole_files(const Files& files) {
  std::vector<RankFile> result;
  for (const auto& [file, parts] : files) {
    RankFile& one = result.emplace_back();
    one.path = file + ".safetensors";
    for (const auto& [name, part] : parts) {
      if (part.box != whole_box(part.shape)) {
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
                        .box = part.box,
                        .size = stored_size(part.data)});
    }
  }
  return offers;
}

/// The parts of all ranks, by rank. Rank 0's groups of parameters get those of the others.
std::vector<OfferedParts> exchange(const Ranks& ranks,
                                   const OfferedParts& offers,
                                   Manifest& manifest) {
  ByteWriter writer;
  writer.put_text(encode(offers)).put_text(encode(manifest));
  std::vector<OfferedParts> all;
  std::vector<Manifest> manifests;
  for (const std::string& bytes : ranks.gather(std::string(writer.view()))) {
    constexpr Bytes kLongest(std::numeric_limits<std::uint32_t>::max());
    ByteReader reader(bytes, "description of a rank's tensors");
    all.push_back(decode_offered_parts(reader.get_text(kLongest)));
    manifests.push_back(decode_manifest(reader.get_text(kLongest)));
  }
  manifest = std::move(manifests.front());
  for (const Manifest& other : manifests) merge_groups(manifest, other);  // the same on every rank
  return all;
}

/// "model/shard-00002-model-00001-of-00001.safetensors", as torch's HuggingFaceStorageWriter
std::string file_of_shard(const std::string& name, Rank rank) {
  char number[16];
  std::snprintf(number, sizeof number, "%05d", rank + 1);
  return name + "/shard-" + number + "-model-00001-of-00001.safetensors";
}

std::vector<RankFile> shard_files(const Files& files,
                                  const OfferedParts& offers,
                                  const std::vector<std::size_t>& writes,
                                  Rank rank) {
  std::map<std::string, RankFile> result;
  for (const std::size_t index : writes) {
    const OfferedPart& offer = offers[index];
    const Part& part = files.at(offer.file).at(offer.name);
    RankFile& file = result[offer.file];
    file.path = file_of_shard(offer.file, rank);
    file.metadata = {{"DCP_VERSION", "1.0"}};
    file.tensors[offer.name] = part.data;
    file.offsets[offer.name] = part.box.offsets;
  }
  std::vector<RankFile> list;
  for (auto& [name, file] : result) list.push_back(std::move(file));
  return list;
}

/// A model without tensors has a file, so that a missing file is noticed.
void add_files_without_tensors(std::vector<RankFile>& list,
                               const Files& files,
                               const std::map<std::string, std::int64_t>& counts) {
  for (const auto& [name, parts] : files) {
    if (!counts.contains(name)) list.push_back({.path = file_of_shard(name, 0)});
  }
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
  std::map<std::string, std::int64_t> counts;
  if (writers == Writers::kRank0) {
    require_same_names(ranks, files);
    counts = counts_of(files);
  } else {
    const OfferedParts offers = offers_of(files);
    const std::vector<OfferedParts> all = exchange(ranks, offers, manifest);
    SharingPlan plan = share_out(all);  // the same on every rank
    const auto rank = static_cast<std::size_t>(ranks.rank());
    mine = shard_files(files, offers, plan.writes[rank], ranks.rank());
    counts = std::move(plan.tensors);
    if (rank == 0) add_files_without_tensors(mine, files, counts);
  }
  manifest.rank_tensors = rank_tensor_counts(ranks, checkpoint.rank_tensors);
  ranks.together([&] {
    if (ranks.rank() != 0) return;
    set_tensor_counts(manifest, counts);
    if (writers == Writers::kRank0) mine = whole_files(files);
  });
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
