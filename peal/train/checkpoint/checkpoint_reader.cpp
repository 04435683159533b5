#include "peal/train/checkpoint/checkpoint_reader.h"

#include <algorithm>
#include <utility>

#include "peal/base/error.h"
#include "peal/train/checkpoint/about_file.h"
#include "peal/train/checkpoint/checkpoint_folder.h"
#include "peal/train/checkpoint/manifest.h"
#include "peal/train/checkpoint/module_tensors.h"
#include "peal/train/checkpoint/rank_files.h"
#include "peal/train/checkpoint/tensor_file.h"
#include "peal/train/checkpoint/together.h"

namespace peal::train {

namespace fs = std::filesystem;

namespace {

/// Whether this process can open the files that the ranks 0 to ranks - 1 read.
bool is_whole(const fs::path& path, int ranks) {
  try {
    const CheckpointReader saved(path);
    for (Rank rank = 0; rank < ranks; ++rank) saved.check_files(rank);
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::map<std::int64_t, fs::path> list_if_possible(const fs::path& folder) {
  try {
    return list_checkpoints(folder);
  } catch (const Error&) {
    return {};
  }
}

/// What the user can do if this rank cannot read the latest checkpoint of the folder. Does not
/// throw an error of the folder: the error of the latest checkpoint is the one to report.
std::string way_out(const fs::path& folder, const fs::path& latest, int ranks) {
  const auto found = list_if_possible(folder);
  auto one = std::ranges::find(found, latest, [](const auto& entry) { return entry.second; });
  if (one == found.end()) {
    return "This rank does not find the checkpoint: check that all ranks share the folder " +
           folder.string();
  }
  std::string damaged = latest.string();
  while (one != found.begin()) {
    --one;
    if (is_whole(one->second, ranks)) {
      return "If the checkpoint is damaged, remove " + damaged + " to continue from " +
             one->second.string();
    }
    damaged += " and " + one->second.string();
  }
  return "If the checkpoint is damaged, remove " + damaged +
         " to begin again: there is no earlier checkpoint that is whole";
}

/// Opens a file or folder that was saved with that many tensors.
StoredTensors open_with(const fs::path& path, std::int64_t tensors) {
  StoredTensors stored(path);
  if (std::ssize(stored.tensors()) != tensors) {
    throw Error(ErrorKind::kResource,
                path.string() + ": there are " + std::to_string(stored.tensors().size()) +
                    " tensors, but the checkpoint was saved with " + std::to_string(tensors) +
                    ": a file is missing, or belongs to another checkpoint");
  }
  return stored;
}

}  // namespace

struct CheckpointReader::Contents {
  explicit Contents(const fs::path& path) : training(path / "training.safetensors") {
    about_file(training.path(), [this] { manifest = parse_manifest(training.metadata()); });
  }

  TensorFile training;
  Manifest manifest;
};

CheckpointReader::CheckpointReader(fs::path path)
    : path_(std::move(path)), contents_(std::make_unique<const Contents>(path_)) {}

CheckpointReader::~CheckpointReader() = default;

std::int64_t CheckpointReader::step() const { return contents_->manifest.step; }
int CheckpointReader::ranks() const { return contents_->manifest.ranks; }
const Values& CheckpointReader::values() const { return contents_->manifest.values; }

StoredTensors CheckpointReader::open_part(const std::string& name, std::int64_t tensors) const {
  std::error_code unknown;
  const fs::path folder = path_ / name;
  return open_with(fs::is_directory(folder, unknown) ? folder : path_ / (name + ".safetensors"),
                   tensors);
}

std::optional<StoredTensors> CheckpointReader::open_rank_file(Rank rank) const {
  const std::map<Rank, std::int64_t>& counts = contents_->manifest.rank_tensors;
  const fs::path file = path_ / file_of_rank(rank);
  if (const auto found = counts.find(rank); found != counts.end()) {
    return open_with(file, found->second);
  }
  std::error_code unknown;
  const bool is_uncounted = counts.empty() && fs::exists(file, unknown);  // by an older peal
  return is_uncounted ? std::optional(StoredTensors(file)) : std::nullopt;
}

StoredTensors CheckpointReader::model(const std::string& name) const {
  const auto found = contents_->manifest.models.find(name);
  if (found == contents_->manifest.models.end()) {
    throw Error(ErrorKind::kUsage, path_.string() + ": there is no model \"" + name + "\"");
  }
  return open_part(name, found->second);
}

void CheckpointReader::load_module(const std::string& name, torch::nn::Module& module) const {
  peal::train::load_module(module, model(name));
}

OptimizerState CheckpointReader::optimizer(
    const std::string& name, const std::optional<std::set<std::string>>& parameters) const {
  const auto found = contents_->manifest.optimizers.find(name);
  if (found == contents_->manifest.optimizers.end()) {
    throw Error(ErrorKind::kUsage, path_.string() + ": there is no optimizer \"" + name + "\"");
  }
  OptimizerState state = found->second.state;
  if (found->second.tensors == 0) return state;  // no step yet; then there may be no file
  const StoredTensors stored = open_part(name, found->second.tensors);
  for (const auto& [key, info] : stored.tensors()) {
    const std::size_t dot = key.rfind('.');
    if (dot == std::string::npos) {
      throw Error(ErrorKind::kResource,
                  stored.path().string() + ": the tensor \"" + key + "\" is not of an optimizer");
    }
    const std::string parameter = key.substr(0, dot);
    if (parameters && !parameters->contains(parameter)) continue;
    state.parameters[parameter][key.substr(dot + 1)] = stored.read(key);
  }
  return state;
}

TensorMap CheckpointReader::tensors() const {
  TensorMap result;
  for (const auto& [name, info] : contents_->training.tensors()) {
    result[name] = contents_->training.read(name);
  }
  return result;
}

TensorMap CheckpointReader::rank_tensors(Rank rank) const {
  TensorMap result;
  if (const auto stored = open_rank_file(rank)) {
    for (const auto& [name, info] : stored->tensors()) result[name] = stored->read(name);
  }
  return result;
}

void CheckpointReader::check_files(Rank rank) const {
  for (const auto& [name, tensors] : contents_->manifest.models) open_part(name, tensors);
  for (const auto& [name, optimizer] : contents_->manifest.optimizers) {
    if (optimizer.tensors > 0) open_part(name, optimizer.tensors);
  }
  open_rank_file(rank);
}

std::unique_ptr<const CheckpointReader> open_latest_checkpoint(ProcessGroup& group,
                                                               const fs::path& folder,
                                                               Timeout timeout) {
  const auto path = latest_checkpoint(group, folder, timeout);
  if (!path) return nullptr;
  std::unique_ptr<const CheckpointReader> saved;
  Ranks(group, timeout).together([&] {
    try {
      saved = std::make_unique<const CheckpointReader>(*path);
      saved->check_files(group.rank());
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kResource) throw;
      throw Error(error.kind(),
                  std::string(error.message()) + ". " + way_out(folder, *path, group.size()));
    }
  });
  return saved;
}

}  // namespace peal::train
