#include "peal/train/checkpoint/pickled_file.h"

#include <caffe2/serialize/inline_container.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "peal/train/testing/nets.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing::TemporaryFolder;
using testing::thrown_text;

/// A pickle of {"w": a tensor of this shape and strides, in a storage of floats}. Each number is
/// one byte.
std::string pickle_of(const std::string& type, int offset, int size, int stride) {
  const auto number = [](int value) { return std::string("K") + static_cast<char>(value); };
  const auto text = [](const std::string& value) {
    return std::string("X") + static_cast<char>(value.size()) + std::string(3, '\0') + value;
  };
  return "\x80\x02}" + text("w") + "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") +
         "ctorch\n" + type + "\n" + text("0") + text("cpu") + number(4) + "tQ" + number(offset) +
         number(size) + "\x85" + number(stride) + "\x85\x89Nt" + "Rs.";
}

class PickledFile : public ::testing::Test {
 protected:
  void write(const std::string& pickle,
             const std::vector<float>& storage,
             const std::map<std::string, std::string>& more = {}) {
    caffe2::serialize::PyTorchStreamWriter writer(path_.string());
    writer.writeRecord("data.pkl", pickle.data(), pickle.size());
    writer.writeRecord("data/0", storage.data(), storage.size() * sizeof(float));
    for (const auto& [name, text] : more) writer.writeRecord(name, text.data(), text.size());
    writer.writeEndOfFile();
  }

  std::string error() {
    return thrown_text([this] { load_pickled_tensors(path_); });
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "file.pt";
};

TEST_F(PickledFile, HasViewsOfItsStorages) {
  write(pickle_of("FloatStorage", 1, 2, 2), {1, 2, 3, 4}, {{"byteorder", "little"}});
  const TensorMap tensors = load_pickled_tensors(path_);
  ASSERT_EQ(tensors.size(), 1u);
  EXPECT_TRUE(tensors.at("w").equal(torch::tensor({2.f, 4.f})));
}

TEST_F(PickledFile, ATensorBeyondItsStorageIsRefused) {
  write(pickle_of("FloatStorage", 1, 2, 3), {1, 2, 3, 4});
  EXPECT_THAT(
      error(),
      AllOf(StartsWith("resource: " + path_.string()), HasSubstr("beyond its storage of 4")));
  write(pickle_of("DoubleStorage", 1, 2, 1), {1, 2, 3, 4});
  EXPECT_THAT(error(), HasSubstr("beyond its storage of 2"));
}

TEST_F(PickledFile, OtherFilesAreRefusedWithAReason) {
  EXPECT_THAT(error(), AllOf(StartsWith("resource: " + path_.string()), HasSubstr("no such file")));
  std::ofstream(path_) << "not a zip file";
  EXPECT_THAT(error(), HasSubstr("this is not a whole file of torch.save"));
  write(pickle_of("QInt8Storage", 0, 1, 1), {1});
  EXPECT_THAT(error(),
              AllOf(StartsWith("unsupported"), HasSubstr("\"w\" has the type QInt8Storage")));
  write(pickle_of("FloatStorage", 0, 1, 1), {1}, {{"byteorder", "big"}});
  EXPECT_THAT(error(), HasSubstr("another order of bytes"));
  testing::SmallNet net;
  torch::serialize::OutputArchive archive;
  net.save(archive);
  archive.save_to(path_.string());
  EXPECT_THAT(error(), AllOf(StartsWith("unsupported"), HasSubstr("read it with torch::load")));
}

TEST_F(PickledFile, AFileCutAtAnyByteIsRefused) {
  write(pickle_of("FloatStorage", 1, 2, 2), {1, 2, 3, 4});
  for (std::size_t size = std::filesystem::file_size(path_); size-- > 0;) {
    std::filesystem::resize_file(path_, size);
    EXPECT_THAT(error(), StartsWith("resource: " + path_.string())) << size;
  }
}

}  // namespace
}  // namespace peal::train
