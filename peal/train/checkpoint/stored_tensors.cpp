#include "peal/train/checkpoint/stored_tensors.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/train/checkpoint/about_file.h"
#include "peal/train/checkpoint/tensor_file.h"
#include "peal/train/checkpoint/unfinished.h"

namespace peal::train {
namespace {

namespace fs = std::filesystem;

/// The files "*.safetensors" of the folder, sorted.
std::vector<fs::path> files_of(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code failure;
  for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    if (entry->path().extension() == ".safetensors") files.push_back(entry->path());
  }
  if (failure) throw system_error("cannot be read", failure.value());
  if (files.empty()) throw Error(ErrorKind::kResource, "the folder has no file *.safetensors");
  std::ranges::sort(files);
  return files;
}

/// The part of `tensor` that `box` describes.
torch::Tensor narrowed(torch::Tensor tensor,
                       const Box& box,
                       const std::vector<std::int64_t>& from) {
  for (std::size_t i = 0; i < box.sizes.size(); ++i) {
    tensor = tensor.narrow(static_cast<std::int64_t>(i), box.offsets[i] - from[i], box.sizes[i]);
  }
  return tensor;
}

}  // namespace

/// The open files, and which of them have the parts of a tensor.
struct StoredTensors::Files {
  struct Part {
    std::size_t file = 0;
    Box box = {};
  };

  std::vector<TensorFile> all;
  std::map<std::string, std::vector<Part>> parts;

  explicit Files(const fs::path& path) {
    std::error_code unknown;
    if (!fs::is_directory(path, unknown)) {
      all.emplace_back(path);
      return;
    }
    for (const fs::path& file : about_file(path, [&] { return files_of(path); })) {
      all.emplace_back(file);
    }
  }

  void add_parts(std::size_t file, std::map<std::string, Info>& infos) {
    for (const auto& [name, stored] : all[file].tensors()) {
      const auto [info, is_new] = infos.try_emplace(name, Info{.type = stored.type});
      if (info->second.type != stored.type) {
        throw Error(ErrorKind::kMismatch,
                    c10::str("tensor \"",
                             name,
                             "\" has the type ",
                             stored.type,
                             " here, but ",
                             info->second.type,
                             " in another file"));
      }
      std::vector<Part>& known = parts[name];
      const Box box{stored.offsets, stored.shape};
      // Ranks may have stored the same part several times.
      if (std::ranges::find(known, box, &Part::box) == known.end()) known.push_back({file, box});
    }
  }

  /// The shape of the whole tensor.
  std::vector<std::int64_t> shape_of(const std::string& name) const {
    std::vector<Box> boxes;
    for (const Part& part : parts.at(name)) boxes.push_back(part.box);
    std::vector<std::int64_t> shape = shape_around(boxes);
    const std::string reason = why_not_divided(shape, boxes);
    if (reason.empty()) return shape;
    throw Error(ErrorKind::kMismatch, "tensor \"" + name + "\" is incomplete: " + reason);
  }
};

StoredTensors::StoredTensors(fs::path path)
    : path_(std::move(path)), files_(std::make_unique<Files>(path_)) {
  for (std::size_t file = 0; file < files_->all.size(); ++file) {
    about_file(files_->all[file].path(), [&] { files_->add_parts(file, infos_); });
  }
  about_file(path_, [this] {
    for (auto& [name, info] : infos_) info.shape = files_->shape_of(name);
  });
}

StoredTensors::~StoredTensors() = default;
StoredTensors::StoredTensors(StoredTensors&&) noexcept = default;
StoredTensors& StoredTensors::operator=(StoredTensors&&) noexcept = default;

torch::Tensor StoredTensors::read(const std::string& name) const {
  const auto info = infos_.find(name);
  if (info == infos_.end()) {
    throw Error(ErrorKind::kUsage, path_.string() + ": there is no tensor \"" + name + "\"");
  }
  const auto& parts = files_->parts.at(name);
  if (parts.size() == 1) return files_->all[parts[0].file].read(name);
  return read(name, whole_box(info->second.shape));
}

torch::Tensor StoredTensors::read(const std::string& name, const Box& box) const {
  return about_file(path_, [&] {
    const auto info = infos_.find(name);
    if (info == infos_.end()) throw Error(ErrorKind::kUsage, "there is no tensor \"" + name + "\"");
    const Box whole = whole_box(info->second.shape);
    const bool fits =
        box.sizes.size() == whole.sizes.size() && box.offsets.size() == box.sizes.size();
    const bool is_empty = std::ranges::find(box.sizes, 0) != box.sizes.end();
    if (!fits || (!is_empty && intersection(box, whole) != box)) {
      throw Error(ErrorKind::kUsage,
                  "the part " + to_string(box) + " lies outside of the tensor \"" + name + "\"");
    }
    torch::Tensor result = torch::empty(box.sizes, info->second.type);
    if (is_empty) return result;
    for (const Files::Part& part : files_->parts.at(name)) {
      const auto common = intersection(part.box, box);
      if (!common) continue;
      const torch::Tensor stored = files_->all[part.file].read(name);
      narrowed(result, *common, box.offsets).copy_(narrowed(stored, *common, part.box.offsets));
    }
    return result;
  });
}

void save_tensors(const fs::path& path, const TensorMap& tensors, const Metadata& metadata) {
  if (!path.has_filename()) {
    throw Error(ErrorKind::kUsage, "\"" + path.string() + "\" does not name a file");
  }
  const fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
  remove_unfinished(folder, path.filename());
  Unfinished unfinished(path, Unfinished::Kind::kFile);
  write_tensors(unfinished.descriptor(), path, tensors, metadata);
  unfinished.publish();
}

TensorMap load_tensors(const fs::path& path) {
  const StoredTensors stored(path);
  TensorMap tensors;
  for (const auto& [name, info] : stored.tensors()) tensors[name] = stored.read(name);
  return tensors;
}

}  // namespace peal::train
