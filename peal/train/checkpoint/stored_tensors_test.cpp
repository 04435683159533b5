#include "peal/train/checkpoint/stored_tensors.h"

#include <fcntl.h>

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "peal/system/fd.h"
#include "peal/train/checkpoint/tensor_file.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TemporaryFolder;
using testing::thrown_text;

/// A folder of files that have parts of the tensors "rows" and "blocks", and all of "one".
class StoredParts : public ::testing::Test {
 protected:
  StoredParts() {
    write("a",
          {{"rows", rows_.narrow(0, 0, 2)},
           {"blocks", block(0, 0, 2, 2)},
           {"complex", complex_[0].unsqueeze(0)}},
          {{"rows", {0, 0}}, {"blocks", {0, 0}}, {"complex", {0, 0}}});
    write("b",
          {{"rows", rows_.narrow(0, 2, 3)},
           {"blocks", block(0, 2, 4, 3)},
           {"complex", complex_[1].unsqueeze(0)}},
          {{"rows", {2, 0}}, {"blocks", {0, 2}}, {"complex", {1, 0}}});
    write("c", {{"one", one_}, {"blocks", block(2, 0, 2, 2)}}, {{"one", {0}}, {"blocks", {2, 0}}});
  }

  torch::Tensor block(std::int64_t row,
                      std::int64_t column,
                      std::int64_t rows,
                      std::int64_t columns) {
    return blocks_.narrow(0, row, rows).narrow(1, column, columns);
  }

  void write(const std::string& name,
             const TensorMap& tensors,
             const std::map<std::string, std::vector<std::int64_t>>& offsets) {
    const auto path = folder_.path() / (name + ".safetensors");
    const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600));
    write_tensors(file, path, tensors, {}, offsets);
  }

  std::string open_error() {
    return thrown_text([this] { StoredTensors all(folder_.path()); });
  }

  TemporaryFolder folder_;
  torch::Tensor rows_ = torch::arange(20, torch::kFloat32).view({5, 4});
  torch::Tensor blocks_ = torch::arange(20, torch::kInt32).view({4, 5});
  torch::Tensor complex_ = torch::randn({2, 3}, torch::kComplexDouble);
  torch::Tensor one_ = torch::ones({3}, torch::kBFloat16);
};

TEST_F(StoredParts, AreReadAsWholeTensors) {
  const TensorMap loaded = load_tensors(folder_.path());
  EXPECT_EQ(loaded.size(), 4u);
  EXPECT_TRUE(loaded.at("rows").equal(rows_));
  EXPECT_TRUE(loaded.at("blocks").equal(blocks_));
  EXPECT_TRUE(loaded.at("complex").equal(complex_));
  EXPECT_TRUE(loaded.at("one").equal(one_));
}

TEST_F(StoredParts, GiveAnyOtherPart) {
  const StoredTensors stored(folder_.path());
  EXPECT_THAT(stored.tensors().at("blocks").shape, ElementsAre(4, 5));
  for (std::int64_t row = 0; row <= 4; ++row) {
    for (std::int64_t rows = 0; rows <= 4 - row; ++rows) {
      for (std::int64_t column = 0; column <= 5; ++column) {
        const torch::Tensor part = stored.read("blocks", {{row, column}, {rows, 5 - column}});
        EXPECT_TRUE(part.equal(block(row, column, rows, 5 - column))) << row << rows << column;
      }
    }
  }
  for (const Box& outside : {Box{{0, 0}, {5, 5}}, Box{{0}, {1}}, Box{{-1, 0}, {1, 1}}}) {
    EXPECT_THAT(
        thrown_text([&] { stored.read("blocks", outside); }),
        AllOf(HasSubstr("lies outside of the tensor \"blocks\""), HasSubstr(folder_.path())));
  }
  EXPECT_THAT(thrown_text([&] { stored.read("none"); }), HasSubstr("there is no tensor \"none\""));
}

TEST_F(StoredParts, AMissingFileIsNoticed) {
  std::filesystem::remove(folder_.path() / "a.safetensors");
  EXPECT_THAT(open_error(),
              AllOf(HasSubstr(folder_.path()), HasSubstr("tensor \"blocks\" is incomplete")));
}

TEST_F(StoredParts, APartThatIsStoredTwiceIsReadOnce) {
  write("d", {{"one", one_}}, {{"one", {0}}});
  EXPECT_TRUE(load_tensors(folder_.path()).at("one").equal(one_));
}

TEST_F(StoredParts, PartsMustFitEachOther) {
  write("d", {{"one", one_}}, {{"one", {2}}});
  EXPECT_THAT(open_error(), HasSubstr("tensor \"one\" is incomplete: the parts"));
  write("d", {{"one", one_.to(torch::kFloat32)}}, {{"one", {3}}});
  EXPECT_THAT(open_error(), HasSubstr("tensor \"one\" has the type Float here, but BFloat16 in"));
  write("d", {{"one", one_.view({3, 1})}}, {{"one", {0, 0}}});
  EXPECT_THAT(open_error(), HasSubstr("different numbers of dimensions"));
  write("d", {{"one", one_}}, {{"one", {0, 0}}});
  EXPECT_THAT(open_error(), HasSubstr("does not say where one belongs"));
}

TEST_F(StoredParts, FilesWithoutOffsetsHaveWholeTensors) {
  write("d", {{"more", one_}}, {});
  EXPECT_TRUE(load_tensors(folder_.path()).at("more").equal(one_));
}

}  // namespace
}  // namespace peal::train
