#include "peal/train/checkpoint/tensor_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/system/file_size.h"
#include "peal/system/own_file.h"
#include "peal/train/checkpoint/about_file.h"
#include "peal/train/checkpoint/element_names.h"
#include "peal/train/formats/sharding_info.h"

namespace peal::train {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

// The format has no complex numbers of two doubles. Such a tensor is stored as F64 with a last
// dimension of 2, as by torch.view_as_real, and with this key and its name in the metadata.
constexpr std::string_view kComplexMark = "complex128.";

std::string complex_mark(const std::string& name) { return std::string(kComplexMark) + name; }

/// Fills `to` from the position `from` of the file.
void read_at(const Fd& file, Bytes from, void* to, Bytes size) {
  auto* next = static_cast<char*>(to);
  while (size > 0_B) {
    const ssize_t got = ::pread(file.get(), next, static_cast<std::size_t>(size.value), from.value);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw system_error("cannot be read", errno);
    if (got == 0) throw Error(ErrorKind::kMismatch, "the file became shorter while it was read");
    next += got;
    from += Bytes(got);
    size -= Bytes(got);
  }
}

std::string read_text_at(const Fd& file, Bytes from, Bytes size) {
  std::string text(static_cast<std::size_t>(size.value), '\0');
  read_at(file, from, text.data(), size);
  return text;
}

Fd open_to_read(const std::filesystem::path& path) {
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) throw system_error("cannot be read", errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw system_error("cannot be read", errno);
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorKind::kResource, "cannot be read: it is not a regular file");
  }
  return file;
}

Bytes size_of(const Fd& file) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw system_error("cannot be read", errno);
  return Bytes(status.st_size);
}

std::map<std::string, StoredTensor> stored_tensors(const SafetensorsHeader& header) {
  const auto info_text = header.metadata.find(kShardingInfoKey);
  const bool has_shards = info_text != header.metadata.end();
  ShardingInfo info;
  if (has_shards) info = parse_sharding_info(info_text->second);
  std::map<std::string, StoredTensor> result;
  for (const auto& [name, entry] : header.tensors) {
    StoredTensor& stored = result[name];
    stored = {.type = element_type_of(entry.dtype), .shape = entry.shape};
    stored.offsets.resize(entry.shape.size());
    if (has_shards) {
      const auto offsets = info.find(name);
      if (offsets == info.end() || offsets->second.size() != entry.shape.size()) {
        throw Error(ErrorKind::kMismatch,
                    std::string(kShardingInfoKey) + " does not say where " + name + " belongs");
      }
      stored.offsets = offsets->second;
    }
    if (header.metadata.contains(complex_mark(name)) && stored.type == torch::kFloat64 &&
        !stored.shape.empty() && stored.shape.back() == 2) {
      stored.type = torch::kComplexDouble;
      stored.shape.pop_back();
      stored.offsets.pop_back();
    }
  }
  return result;
}

/// The tensor as its bytes are in a file: dense, in row-major order, on the CPU.
torch::Tensor dense(const torch::Tensor& tensor) {
  const torch::Tensor plain = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous();
  return plain.scalar_type() == torch::kComplexDouble ? torch::view_as_real(plain) : plain;
}

std::string_view bytes_of_dense(const torch::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

/// The header of a file with these tensors, but not yet their places.
SafetensorsHeader describe(const TensorMap& tensors,
                           const Metadata& metadata,
                           const ShardingInfo& offsets) {
  SafetensorsHeader header{.metadata = metadata};
  ShardingInfo info = offsets;
  for (const auto& [name, tensor] : tensors) {
    check_can_be_saved(name, tensor);
    torch::ScalarType type = tensor.scalar_type();
    std::vector<std::int64_t> shape = tensor.sizes().vec();
    if (type == torch::kComplexDouble) {
      type = torch::kFloat64;
      shape.push_back(2);
      header.metadata[complex_mark(name)] = "";
      if (!info.empty()) info.at(name).push_back(0);
    }
    header.tensors[name] = {.dtype = std::string(element_name_of(type)), .shape = shape};
  }
  header.metadata.try_emplace("format", "pt");  // some readers in Python ask for it
  if (!info.empty()) header.metadata[kShardingInfoKey] = print_sharding_info(info);
  return header;
}

}  // namespace

TensorFile::TensorFile(std::filesystem::path path) : path_(std::move(path)) {
  about_file(path_, [this] {
    file_ = open_to_read(path_);
    try {
      read_header();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kMismatch) throw;
      throw Error(error.kind(),
                  "this is not a whole safetensors file: " + std::string(error.message()));
    }
  });
}

void TensorFile::read_header() {
  const Bytes size = size_of(file_);
  const std::string prefix = read_text_at(file_, 0_B, std::min(size, kSafetensorsPrefix));
  if (prefix.starts_with("PK\x03\x04")) {
    throw Error(ErrorKind::kUsage,
                "this is a file of torch.save, and not of safetensors: read it by "
                "load_pickled_tensors");
  }
  const Bytes text_size = safetensors_text_size(prefix, size);
  data_begin_ = kSafetensorsPrefix + text_size;
  header_ = parse_safetensors_header(read_text_at(file_, kSafetensorsPrefix, text_size),
                                     size - data_begin_);
  tensors_ = stored_tensors(header_);
}

torch::Tensor TensorFile::read(const std::string& name) const {
  return about_file(path_, [&] {
    const auto stored = tensors_.find(name);
    if (stored == tensors_.end()) {
      throw Error(ErrorKind::kUsage, "the file has no tensor \"" + name + "\"");
    }
    const SafetensorsHeader::Tensor& entry = header_.tensors.at(name);
    torch::Tensor tensor = torch::empty(stored->second.shape, stored->second.type);
    read_at(file_, data_begin_ + entry.begin, tensor.mutable_data_ptr(), entry.end - entry.begin);
    return tensor;
  });
}

void check_can_be_saved(const std::string& name, const torch::Tensor& tensor) {
  if (!tensor.defined()) {
    throw Error(ErrorKind::kUsage, "the tensor \"" + name + "\" is undefined and cannot be saved");
  }
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorKind::kUnsupported, "the tensor \"" + name + "\" cannot be saved: " + what);
  };
  if (tensor.layout() != torch::kStrided) {
    refuse(c10::str("its layout is ", tensor.layout(), ": convert it with .to_dense()"));
  }
  if (tensor.is_meta()) refuse("it has no data, because it is on the device meta");
  const torch::ScalarType type = tensor.scalar_type();
  if (element_name_of(type).empty() && type != torch::kComplexDouble) {
    refuse(c10::str("safetensors files do not have its type ",
                    type,
                    ": convert it with .to(...) or .dequantize()"));
  }
}

Bytes stored_size(const torch::Tensor& tensor) {
  return Bytes(static_cast<std::int64_t>(tensor.nbytes()));
}

void write_tensors(const Fd& file,
                   const std::filesystem::path& path,
                   const TensorMap& tensors,
                   const Metadata& metadata,
                   const ShardingInfo& offsets) {
  SafetensorsHeader header = describe(tensors, metadata, offsets);
  const Bytes data_size = place_tensors(header);
  const std::string beginning = print_safetensors_header(header);
  check_file_size(Bytes(std::ssize(beginning)) + data_size, path.string());
  write_all(file, beginning, path);
  std::vector<std::pair<Bytes, const std::string*>> order;
  for (const auto& [name, entry] : header.tensors) order.emplace_back(entry.begin, &name);
  std::ranges::stable_sort(order, {}, [](const auto& one) { return one.first; });
  for (const auto& [begin, name] : order) {
    write_all(file, bytes_of_dense(dense(tensors.at(*name))), path);
  }
}

}  // namespace peal::train
