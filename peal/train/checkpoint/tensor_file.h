// One safetensors file. Python's safetensors.torch reads and writes the same files. Used by
// stored_tensors.cpp and by the checkpoints.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <torch/types.h>

#include "peal/base/units.h"
#include "peal/system/fd.h"
#include "peal/train/checkpoint/tensor_map.h"
#include "peal/train/formats/header.h"

namespace peal::train {

/// What a file has under one name.
struct StoredTensor {
  torch::ScalarType type = torch::ScalarType::Undefined;
  std::vector<std::int64_t> shape = {};
  std::vector<std::int64_t> offsets = {};  // in the whole tensor; zeros unless the file has shards

  friend bool operator==(const StoredTensor&, const StoredTensor&) = default;
};

/// An open file. Later changes of the name do not matter.
/// Threads: any number at once.
class TensorFile final {
 public:
  /// Reads and checks the header.
  /// Errors: resource (no such file, not readable, not a whole safetensors file). The text begins
  ///   with the path.
  explicit TensorFile(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  const Metadata& metadata() const { return header_.metadata; }
  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }

  /// The tensor, in row-major order on the CPU, with the bits of the file.
  /// Errors: usage (no tensor of this name), resource (also: the file became shorter).
  torch::Tensor read(const std::string& name) const;

 private:
  void read_header();

  std::filesystem::path path_;
  Fd file_;
  SafetensorsHeader header_;
  Bytes data_begin_;
  std::map<std::string, StoredTensor> tensors_;
};

/// Checks that a file can hold the tensor, and names it in the error.
/// Errors: usage (an undefined tensor), unsupported (not dense, no memory, a type that safetensors
///   files do not have).
void check_can_be_saved(const std::string& name, const torch::Tensor& tensor);

/// The number of bytes of the tensor in a file.
Bytes stored_size(const torch::Tensor& tensor);

/// Writes the tensors into an empty file that is open for writing. `path` is for errors. `offsets`
/// are those of the tensors that are shards; if it is not empty, it needs all names.
/// Errors: usage (a name that is not UTF-8), resource, those of check_can_be_saved.
/// Cost: a copy of one tensor at a time, for tensors that are not in row-major order on the CPU.
void write_tensors(const Fd& file,
                   const std::filesystem::path& path,
                   const TensorMap& tensors,
                   const Metadata& metadata = {},
                   const std::map<std::string, std::vector<std::int64_t>>& offsets = {});

}  // namespace peal::train
