#include "mnist/mnist_files.h"

#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "peal/base/error.h"
#include "peal/system/private_folder.h"

#include "mnist/idx.h"

namespace mnist {
namespace {

using testing::HasSubstr;

/// Files in MNIST's format, in a folder that is removed at the end of the test.
class MnistTest : public testing::Test {
 protected:
  /// `count` pictures of 2 x 2; picture i has the pixels 4 i .. 4 i + 3 and the label i mod 10.
  void write_pair(const std::string& name, std::size_t count, std::size_t labels) {
    std::string pixels, classes;
    for (std::size_t i = 0; i < count * 4; ++i) pixels += static_cast<char>(i);
    for (std::size_t i = 0; i < labels; ++i) classes += static_cast<char>(i % 10);
    write(name + "-images-idx3-ubyte", header(3) + size(count) + size(2) + size(2) + pixels);
    write(name + "-labels-idx1-ubyte", header(1) + size(labels) + classes);
  }

  void write(const std::string& name, const std::string& content) {
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }

  static std::string header(char dimensions) { return {0, 0, 8, dimensions}; }
  static std::string size(std::size_t n) {
    return {static_cast<char>(n >> 24),
            static_cast<char>(n >> 16),
            static_cast<char>(n >> 8),
            static_cast<char>(n)};
  }

  std::string refusal() {
    try {
      read_mnist(folder_);
    } catch (const peal::Error& error) {
      EXPECT_EQ(error.kind(), peal::ErrorKind::kUsage);
      return error.what();
    }
    return "accepted";
  }

  peal::PrivateFolder own_folder_{"peal-test."};
  std::filesystem::path folder_ = own_folder_.path();
};

TEST_F(MnistTest, BothPairsAreReadWithoutChanges) {
  write_pair("train", 6, 6);
  write_pair("t10k", 3, 3);
  const DigitSets sets = read_mnist(folder_);
  EXPECT_EQ(sets.kind, "mnist");
  EXPECT_EQ(sets.train.count(), 6u);
  EXPECT_EQ(sets.test.count(), 3u);
  EXPECT_EQ(sets.test.rows, 2u);
  EXPECT_THAT(sets.test.labels, testing::ElementsAre(0, 1, 2));
  EXPECT_EQ(sets.train.pixels.back(), 23);
}

TEST_F(MnistTest, TheTestDigitsAloneAreSplitNineToOneAndTheSourceSaysSo) {
  write_pair("t10k", 20, 20);
  const DigitSets sets = read_mnist(folder_);
  EXPECT_EQ(sets.kind, "mnist-t10k");
  EXPECT_EQ(sets.train.count(), 18u);
  EXPECT_EQ(sets.test.labels, (std::vector<std::uint8_t>{8, 9}));
  EXPECT_EQ(sets.test.pixels.front(), 72);
  EXPECT_THAT(sets.source, HasSubstr("the first 18 to train on, the other 2 to test with"));
}

TEST_F(MnistTest, GzippedFilesAreReadToo) {
  write_pair("t10k", 20, 20);
  const DigitSets plain = read_mnist(folder_);
  const std::filesystem::path path = folder_ / "t10k-images-idx3-ubyte";
  std::ifstream file(path, std::ios::binary);
  const std::string content((std::istreambuf_iterator<char>(file)), {});
  gzFile packed = gzopen((path.string() + ".gz").c_str(), "wb");
  gzwrite(packed, content.data(), static_cast<unsigned>(content.size()));
  gzclose(packed);
  std::filesystem::remove(path);
  EXPECT_EQ(read_mnist(folder_).train, plain.train);
}

TEST_F(MnistTest, TheErrorOfAnEmptyFolderNamesTheNeededFiles) {
  EXPECT_THAT(refusal(), HasSubstr("t10k-images-idx3-ubyte"));
}

TEST_F(MnistTest, DifferentNumbersOfPicturesAndLabelsAreRejected) {
  write_pair("t10k", 4, 5);
  EXPECT_THAT(refusal(), HasSubstr("4 pictures and 5 labels"));
}

TEST_F(MnistTest, SwappedFilesAreRejected) {
  write_pair("t10k", 4, 4);
  const auto images = folder_ / "t10k-images-idx3-ubyte",
             labels = folder_ / "t10k-labels-idx1-ubyte";
  std::filesystem::rename(images, folder_ / "kept");
  std::filesystem::rename(labels, images);
  std::filesystem::rename(folder_ / "kept", labels);
  EXPECT_THAT(refusal(), HasSubstr("pictures must have 3 dimensions, not 1"));
}

TEST_F(MnistTest, ALabelThatIsNotADigitIsRejected) {
  EXPECT_THROW(labelled({{1, 1, 1}, {0}}, {{1}, {10}}), peal::Error);
  EXPECT_THROW(labelled({{1, 1, 1}, {0}}, {{1, 1}, {1}}), peal::Error);
}

}  // namespace
}  // namespace mnist
