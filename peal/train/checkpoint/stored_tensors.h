// Tensors in safetensors files, which Python's safetensors.torch reads and writes, too.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <torch/types.h>

#include "peal/train/checkpoint/tensor_map.h"
#include "peal/train/formats/box.h"

namespace peal::train {

/// Writes a safetensors file in place of an earlier one. The earlier file stays whole until the new
/// one is durable, also if the process is killed or the disk is full. Tensors that share memory are
/// each written. A symbolic link at `path` is replaced; the file to which it leads stays.
/// Errors: usage (an undefined tensor, a name that is not UTF-8), unsupported (a tensor that is not
///   dense, or of a type that safetensors files do not have), resource.
/// Cost: a copy of one tensor at a time, for tensors that are not in row-major order on the CPU.
void save_tensors(const std::filesystem::path& path,
                  const TensorMap& tensors,
                  const Metadata& metadata = {});

/// The tensors of a safetensors file, or of all such files in a folder. The files of a folder may
/// have a tensor in parts: files of ranks, or of torch's HuggingFaceStorageWriter.
/// Threads: any number at once.
class StoredTensors final {
 public:
  struct Info {
    torch::ScalarType type = torch::ScalarType::Undefined;
    std::vector<std::int64_t> shape = {};  // of the whole tensor
  };

  /// Opens the file, or each file "*.safetensors" of the folder, and reads the headers.
  /// Errors: those of TensorFile; resource (a folder without such files; parts that do not make up
  ///   a tensor: a file is missing, or belongs to another model).
  explicit StoredTensors(std::filesystem::path path);
  ~StoredTensors();
  StoredTensors(StoredTensors&&) noexcept;
  StoredTensors& operator=(StoredTensors&&) noexcept;

  const std::filesystem::path& path() const { return path_; }
  const std::map<std::string, Info>& tensors() const { return infos_; }

  /// The whole tensor, as TensorFile::read.
  /// Cost: memory for the tensor and for its largest part.
  torch::Tensor read(const std::string& name) const;
  /// A part of the tensor, from parts of any other form.
  /// Errors: those of TensorFile::read; usage (a box outside of the tensor).
  /// Cost: memory for the part and for the largest stored part that it needs.
  torch::Tensor read(const std::string& name, const Box& box) const;

 private:
  struct Files;

  std::filesystem::path path_;
  std::map<std::string, Info> infos_;
  std::unique_ptr<Files> files_;
};

/// All tensors of a file or folder.
/// Errors: those of StoredTensors and its `read`.
TensorMap load_tensors(const std::filesystem::path& path);

}  // namespace peal::train
