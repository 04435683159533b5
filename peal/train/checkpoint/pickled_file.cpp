#include "peal/train/checkpoint/pickled_file.h"

#include <caffe2/serialize/inline_container.h>

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/train/checkpoint/about_file.h"
#include "peal/train/formats/pickle.h"

namespace peal::train {
namespace {

constexpr std::size_t kLongestPickle = 100'000'000;

constexpr std::array<std::pair<std::string_view, torch::ScalarType>, 20> kPickledTypes = {{
    {"BoolStorage", torch::kBool},
    {"ByteStorage", torch::kUInt8},
    {"CharStorage", torch::kInt8},
    {"ShortStorage", torch::kInt16},
    {"IntStorage", torch::kInt32},
    {"LongStorage", torch::kInt64},
    {"HalfStorage", torch::kFloat16},
    {"BFloat16Storage", torch::kBFloat16},
    {"FloatStorage", torch::kFloat32},
    {"DoubleStorage", torch::kFloat64},
    {"ComplexFloatStorage", torch::kComplexFloat},
    {"ComplexDoubleStorage", torch::kComplexDouble},
    {"uint16", torch::kUInt16},
    {"uint32", torch::kUInt32},
    {"uint64", torch::kUInt64},
    {"float8_e5m2", torch::kFloat8_e5m2},
    {"float8_e4m3fn", torch::kFloat8_e4m3fn},
    {"float8_e5m2fnuz", torch::kFloat8_e5m2fnuz},
    {"float8_e4m3fnuz", torch::kFloat8_e4m3fnuz},
    {"float8_e8m0fnu", torch::kFloat8_e8m0fnu},
}};

torch::ScalarType pickled_type(const PickledTensor& tensor) {
  for (const auto& [name, type] : kPickledTypes) {
    if (name == tensor.type) return type;
  }
  throw Error(ErrorKind::kUnsupported,
              "the tensor \"" + tensor.name + "\" has the type " + tensor.type +
                  ": convert it before torch.save");
}

/// The records of a file of torch.save. LibTorch's reader checks the directory of the file.
class Archive {
 public:
  explicit Archive(const std::filesystem::path& path)
      : left_(std::filesystem::file_size(path)), reader_(path.string()) {}

  bool has(const std::string& name) { return reader_.hasRecord(name); }

  /// The bytes of a record. All records together are not larger than the file, since torch.save
  /// does not compress them: a hostile directory cannot make the program read more.
  torch::Storage read(const std::string& name) {
    const std::size_t size = reader_.getRecordSize(name);
    if (size > left_) {
      throw Error(ErrorKind::kMismatch, "the record " + name + " is larger than the file");
    }
    left_ -= size;
    auto [memory, got] = reader_.getRecord(name);
    return torch::Storage(torch::Storage::use_byte_size_t(), got, std::move(memory));
  }

  std::string read_text(const std::string& name, std::size_t longest) {
    if (reader_.getRecordSize(name) > longest) {
      throw Error(ErrorKind::kMismatch, "the record " + name + " is too large");
    }
    const torch::Storage bytes = read(name);
    return {static_cast<const char*>(bytes.data()), bytes.nbytes()};
  }

 private:
  std::size_t left_;
  caffe2::serialize::PyTorchStreamReader reader_;
};

void check_archive(Archive& archive) {
  if (archive.has("constants.pkl")) {
    throw Error(ErrorKind::kUnsupported,
                "the file is an archive of TorchScript, as torch::save in C++ writes it: read it "
                "with torch::load or torch::jit::load");
  }
  if (!archive.has("data.pkl")) throw Error(ErrorKind::kMismatch, "the file has no data.pkl");
  if (archive.has("byteorder") && archive.read_text("byteorder", 100) != "little") {
    throw Error(ErrorKind::kUnsupported,
                "the file was written on a machine with another order of bytes: write it as "
                "safetensors there");
  }
}

torch::Tensor view_of(const torch::Storage& storage, const PickledTensor& tensor) {
  const torch::ScalarType type = pickled_type(tensor);
  const auto needed = elements_needed(tensor);
  const auto there = static_cast<std::int64_t>(storage.nbytes() / c10::elementSize(type));
  if (!needed || *needed > there) {
    throw Error(ErrorKind::kMismatch,
                c10::str("the tensor \"",
                         tensor.name,
                         "\" of shape ",
                         tensor.shape,
                         " reaches beyond its storage of ",
                         there,
                         " elements"));
  }
  return torch::empty({0}, type).set_(storage, tensor.offset, tensor.shape, tensor.strides);
}

TensorMap read_archive(Archive& archive) {
  check_archive(archive);
  TensorMap tensors;
  std::map<std::string, torch::Storage> storages;
  for (const PickledTensor& tensor :
       parse_pickled_tensors(archive.read_text("data.pkl", kLongestPickle))) {
    auto storage = storages.find(tensor.storage);
    if (storage == storages.end()) {
      const std::string record = "data/" + tensor.storage;
      storage = storages.emplace(tensor.storage, archive.read(record)).first;
    }
    tensors[tensor.name] = view_of(storage->second, tensor);
  }
  return tensors;
}

}  // namespace

TensorMap load_pickled_tensors(const std::filesystem::path& path) {
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(path, unknown)) {
    throw Error(ErrorKind::kResource, path.string() + ": there is no such file");
  }
  return about_file(path, [&] {
    try {
      Archive archive(path);
      return read_archive(archive);
    } catch (const c10::Error& error) {
      throw Error(ErrorKind::kMismatch,
                  std::string("this is not a whole file of torch.save since torch 1.6: ") +
                      error.what_without_backtrace());
    }
  });
}

}  // namespace peal::train
