#include "peal/train/checkpoint/tensor_file.h"

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/train/checkpoint/element_names.h"
#include "peal/train/checkpoint/stored_tensors.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing::TemporaryFolder;
using testing::thrown_text;

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Writes a new file: to overwrite a file takes long on some file systems.
void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::remove(path);
  std::ofstream(path, std::ios::binary) << bytes;
}

/// Whether both have the same type, shape and bits.
bool same_bits(const torch::Tensor& a, const torch::Tensor& b) {
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return false;
  const auto bytes = [](const torch::Tensor& tensor) {
    const torch::Tensor plain = tensor.detach().resolve_conj().contiguous();
    return std::string(static_cast<const char*>(plain.const_data_ptr()), plain.nbytes());
  };
  return bytes(a) == bytes(b);
}

/// A tensor of any bits.
torch::Tensor random_bits(torch::ScalarType type, std::vector<std::int64_t> shape) {
  const auto size = static_cast<std::int64_t>(c10::elementSize(type));
  const auto bytes = torch::randint(
      type == torch::kBool ? 2 : 256, {c10::multiply_integers(shape) * size}, torch::kUInt8);
  return bytes.view(type).view(shape);
}

class TensorFiles : public ::testing::Test {
 protected:
  TensorFiles() { torch::manual_seed(3); }

  TensorMap reload(const TensorMap& tensors) {
    save_tensors(path_, tensors);
    return load_tensors(path_);
  }

  void expect_same_after_reload(const TensorMap& tensors) {
    const TensorMap loaded = reload(tensors);
    EXPECT_EQ(loaded.size(), tensors.size());
    for (const auto& [name, tensor] : tensors) {
      ASSERT_TRUE(loaded.contains(name)) << name;
      EXPECT_TRUE(same_bits(loaded.at(name), tensor)) << name;
      EXPECT_TRUE(loaded.at(name).is_contiguous()) << name;
    }
  }

  std::string load_error() {
    return thrown_text([this] { load_tensors(path_); });
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "file.safetensors";
};

TEST_F(TensorFiles, KeepTheBitsOfEachType) {
  TensorMap tensors;
  for (const auto& [name, type] : kElementNames) {
    tensors[std::string(name)] = random_bits(type, {3, 2});
    tensors[std::string(name) + " number"] = random_bits(type, {});
    tensors[std::string(name) + " empty"] = random_bits(type, {2, 0, 3});
  }
  tensors["complex128"] = random_bits(torch::kComplexDouble, {3, 2});
  tensors["complex128 number"] = random_bits(torch::kComplexDouble, {});
  tensors["complex128 empty"] = random_bits(torch::kComplexDouble, {0});
  tensors["two doubles"] = torch::randn({3, 2}, torch::kFloat64);
  expect_same_after_reload(tensors);
}

TEST_F(TensorFiles, ElementsHaveTheSizeThatTheFormatSays) {
  for (const auto& [name, type] : kElementNames) {
    EXPECT_EQ(safetensors_element_size(name),
              Bytes(static_cast<std::int64_t>(c10::elementSize(type))))
        << name;
  }
}

TEST_F(TensorFiles, KeepTheValuesForAnyStrides) {
  const torch::Tensor base = torch::randn({4, 3, 6, 5});
  const torch::Tensor complex = torch::randn({3, 4}, torch::kComplexFloat);
  expect_same_after_reload({
      {"transposed", base.transpose(0, 3)},
      {"channels last", base.contiguous(torch::MemoryFormat::ChannelsLast)},
      {"every second", base.slice(2, 0, 6, 2)},
      {"expanded", torch::randn({1, 3}).expand({5, 3})},
      {"inside", base.select(0, 2)},
      {"conjugate", torch::conj(complex)},
      {"imaginary part of a conjugate", torch::imag(torch::conj(complex))},
      {"parameter", torch::randn({2}).requires_grad_()},
  });
}

TEST_F(TensorFiles, TensorsThatShareMemoryAreEachWritten) {
  const torch::Tensor tied = torch::randn({3});
  const TensorMap loaded = reload({{"a", tied}, {"b", tied}, {"c", tied.narrow(0, 1, 2)}});
  EXPECT_TRUE(loaded.at("a").equal(loaded.at("b")));
  EXPECT_FALSE(loaded.at("a").is_alias_of(loaded.at("b")));
  EXPECT_TRUE(loaded.at("c").equal(tied.narrow(0, 1, 2)));
}

TEST_F(TensorFiles, MayBeEmptyAndHaveStrangeNames) {
  EXPECT_TRUE(reload({}).empty());
  expect_same_after_reload({{"", torch::ones({1})}, {"a\n\"\\/\xc3\xa9", torch::ones({2})}});
}

TEST_F(TensorFiles, MetadataIsText) {
  save_tensors(path_, {}, {{"note", "two\nlines"}});
  EXPECT_EQ(TensorFile(path_).metadata(), (Metadata{{"format", "pt"}, {"note", "two\nlines"}}));
}

TEST_F(TensorFiles, AFileCutAtAnyByteIsRefusedWithAReason) {
  save_tensors(path_, {{"a", torch::ones({2, 3})}, {"b", torch::ones({1}, torch::kBool)}});
  const std::string whole = bytes_of(path_);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write_bytes(path_, whole.substr(0, size));
    EXPECT_THAT(load_error(),
                AllOf(StartsWith("resource: " + path_.string() +
                                 ": this is not a whole safetensors file: "),
                      HasSubstr(size < 8 ? "the file has" : "bytes")))
        << size;
  }
  write_bytes(path_, whole + "x");
  EXPECT_THAT(load_error(), HasSubstr("bytes of data, but its tensors need 25"));
}

TEST_F(TensorFiles, AFileOfTorchSaveIsRefusedWithTheFunctionThatReadsIt) {
  torch::save(torch::ones({2}), path_.string());
  EXPECT_THAT(load_error(), HasSubstr("read it by load_pickled_tensors"));
}

TEST_F(TensorFiles, NoDamagedByteOfTheHeaderIsDangerous) {
  save_tensors(path_, {{"a", torch::ones({2, 3})}, {"b", torch::ones({1}, torch::kBool)}});
  const std::string whole = bytes_of(path_);
  for (std::size_t byte = 0; byte + 25 < whole.size(); ++byte) {
    for (const char flip : {'\x01', '\x10', '\x80', '\xff'}) {
      std::string damaged = whole;
      damaged[byte] = static_cast<char>(damaged[byte] ^ flip);
      write_bytes(path_, damaged);
      // A damaged name is another name; all other damage must be refused.
      const std::string error = load_error();
      EXPECT_TRUE(error == "no error" || error.starts_with("resource: " + path_.string())) << error;
    }
  }
}

TEST_F(TensorFiles, ErrorsNameTheFile) {
  EXPECT_THAT(load_error(),
              AllOf(StartsWith("resource: " + path_.string()), HasSubstr("No such file")));
  EXPECT_THAT(thrown_text([this] { load_tensors(folder_.path()); }),
              HasSubstr("the folder has no file *.safetensors"));
  EXPECT_THAT(thrown_text([] { load_tensors("/dev/null"); }), HasSubstr("not a regular file"));
  save_tensors(path_, {});
  EXPECT_THAT(thrown_text([this] { TensorFile(path_).read("w"); }),
              AllOf(HasSubstr(path_.string()), HasSubstr("the file has no tensor \"w\"")));
}

TEST_F(TensorFiles, TensorsThatCannotBeSavedAreNamed) {
  const auto error = [this](const torch::Tensor& tensor) {
    return thrown_text([&] { save_tensors(path_, {{"w", tensor}}); });
  };
  EXPECT_THAT(error({}), HasSubstr("\"w\" is undefined"));
  EXPECT_THAT(error(torch::ones({2, 2}).to_sparse()), HasSubstr("convert it with .to_dense()"));
  EXPECT_THAT(error(torch::empty({2}, torch::kMeta)), HasSubstr("on the device meta"));
  EXPECT_THAT(error(torch::empty({2}, torch::kBits8)), HasSubstr("do not have its type Bits8"));
  EXPECT_THAT(thrown_text([this] {
                save_tensors(path_, {{"\xff", torch::ones({1})}});
              }),
              HasSubstr("not UTF-8"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path())) << "nothing is left of a failed save";
}

TEST_F(TensorFiles, AnUnknownTypeIsRefused) {
  save_tensors(path_, {{"w", torch::ones({2})}});
  std::string bytes = bytes_of(path_);
  bytes.replace(bytes.find("\"F32\",\"shape\":[2]"), 17, "\"F4\",\"shape\":[ 2]");
  write_bytes(path_, bytes);
  EXPECT_THAT(load_error(), HasSubstr("tensor \"w\" has the unknown type \"F4\""));
}

TEST_F(TensorFiles, AFailedSaveLeavesTheEarlierFile) {
  save_tensors(path_, {{"w", torch::ones({2})}});
  EXPECT_THAT(thrown_text([this] {
                save_tensors(path_, {{"w", torch::zeros({2})}, {"x", torch::Tensor()}});
              }),
              HasSubstr("undefined"));
  EXPECT_TRUE(load_tensors(path_).at("w").equal(torch::ones({2})));
}

}  // namespace
}  // namespace peal::train
