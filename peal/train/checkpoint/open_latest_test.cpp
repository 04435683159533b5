// The checkpoint from which a run continues, and the error about a damaged one.
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "peal/train/checkpoint/checkpoint_reader.h"
#include "peal/train/checkpoint/save_checkpoint.h"
#include "peal/train/checkpoint/stored_tensors.h"
#include "peal/train/checkpoint/tensor_file.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::EndsWith;
using testing::on_ranks;
using ::testing::StartsWith;
using testing::TemporaryFolder;
using testing::thrown_text;

class OpenLatest : public ::testing::Test {
 protected:
  /// Two ranks save the steps 1, 2 and 3.
  void SetUp() override {
    on_ranks(2, [this](const ProcessGroupPtr& group) {
      Checkpoint now{.models = {{"model", {{"w", torch::ones({2})}}}},
                     .rank_tensors = {{"own", torch::ones({1})}}};
      for (now.step = 1; now.step <= 3; ++now.step) save_checkpoint(*group, folder_.path(), now);
      return true;
    });
  }

  fs::path step(int number) const {
    return folder_.path() / ("step-0000000" + std::to_string(number));
  }
  void cut(int number, const std::string& file) const { fs::resize_file(step(number) / file, 20); }

  /// What opening says on each of two ranks: the step, or the error.
  std::vector<std::string> opened() const {
    return on_ranks(2, [this](const ProcessGroupPtr& group) {
      std::string found = "none";
      const std::string error = thrown_text([&] {
        const auto saved = open_latest_checkpoint(*group, folder_.path());
        if (saved) found = "step " + std::to_string(saved->step());
      });
      return error == "no error" ? found : error;
    });
  }

  TemporaryFolder folder_;
};

TEST_F(OpenLatest, AllRanksGetTheLatest) { EXPECT_THAT(opened(), Each("step 3")); }

TEST_F(OpenLatest, AnEmptyFolderHasNone) {
  for (const int number : {1, 2, 3}) fs::remove_all(step(number));
  EXPECT_THAT(opened(), Each("none"));
}

TEST_F(OpenLatest, ADamagedFileIsRefusedAndTheTextNamesTheCheckpointBefore) {
  cut(3, "model.safetensors");
  EXPECT_THAT(
      opened(),
      Each(
          AllOf(StartsWith("resource: rank 0: " + (step(3) / "model.safetensors").string() +
                           ": this is not a whole safetensors file: "),
                EndsWith("remove " + step(3).string() + " to continue from " + step(2).string()))));
  fs::remove_all(step(3));
  EXPECT_THAT(opened(), Each("step 2")) << "the advice helps";
}

TEST_F(OpenLatest, AMissingFileIsTheSameKindOfError) {
  fs::remove(step(3) / "training.safetensors");
  EXPECT_THAT(
      opened(),
      Each(AllOf(StartsWith("resource: rank 0: " + (step(3) / "training.safetensors").string()),
                 EndsWith("to continue from " + step(2).string()))));
}

TEST_F(OpenLatest, ADamagedFileOfOneRankFailsAllRanks) {
  cut(3, "ranks/rank-00001.safetensors");
  EXPECT_THAT(opened(), Each(StartsWith("resource: rank 1: " + step(3).string())));
}

TEST_F(OpenLatest, AMissingFileOfOneRankFailsAllRanks) {
  const fs::path missing = step(3) / "ranks" / "rank-00001.safetensors";
  fs::remove(missing);
  EXPECT_THAT(opened(),
              Each(AllOf(StartsWith("resource: rank 1: " + missing.string()),
                         EndsWith("to continue from " + step(2).string()))));
}

TEST_F(OpenLatest, ACheckpointWithoutTheNumbersOfRankTensorsIsRead) {
  const fs::path file = step(3) / "training.safetensors";
  Metadata of_older_peal = TensorFile(file).metadata();
  ASSERT_EQ(of_older_peal.erase("rank.0.tensors") + of_older_peal.erase("rank.1.tensors"), 2u);
  save_tensors(file, {}, of_older_peal);
  EXPECT_THAT(opened(), Each("step 3"));
  EXPECT_EQ(CheckpointReader(step(3)).rank_tensors(1).size(), 1u);
  EXPECT_EQ(CheckpointReader(step(3)).rank_tensors(2).size(), 0u);
}

TEST_F(OpenLatest, ACheckpointThatIsDamagedForOneRankIsNotRecommended) {
  cut(3, "model.safetensors");
  fs::remove(step(2) / "ranks" / "rank-00001.safetensors");
  EXPECT_THAT(opened(), Each(EndsWith("to continue from " + step(1).string())));
}

TEST_F(OpenLatest, ARankThatDoesNotSeeTheFolderIsToldToShareIt) {
  const TemporaryFolder other;
  const auto errors = on_ranks(2, [&](const ProcessGroupPtr& group) {
    const fs::path& mine = group->rank() == 0 ? folder_.path() : other.path();
    return thrown_text([&] { open_latest_checkpoint(*group, mine); });
  });
  EXPECT_THAT(
      errors,
      Each(AllOf(StartsWith("resource: rank 1: " + other.path().string()),
                 EndsWith("check that all ranks share the folder " + other.path().string()))));
}

TEST_F(OpenLatest, ADamagedCheckpointIsNotRecommended) {
  cut(3, "model.safetensors");
  cut(2, "model.safetensors");
  EXPECT_THAT(opened(),
              Each(EndsWith("remove " + step(3).string() + " and " + step(2).string() +
                            " to continue from " + step(1).string())));
  cut(1, "model.safetensors");
  EXPECT_THAT(opened(),
              Each(EndsWith("to begin again: there is no earlier checkpoint that is whole")));
}

}  // namespace
}  // namespace peal::train
