#include "peal/train/checkpoint/save_checkpoint.h"

#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "peal/train/checkpoint/checkpoint_folder.h"
#include "peal/train/checkpoint/checkpoint_reader.h"
#include "peal/train/checkpoint/testing/trained.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::loaded;
using testing::names_in;
using testing::same_state;
using testing::TemporaryFolder;
using testing::thrown_text;
using testing::Trained;

class SaveCheckpoint : public ::testing::Test {
 protected:
  TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path() / "runs" / "a";
};

TEST_F(SaveCheckpoint, ResumedTrainingEqualsUninterruptedTraining) {
  Trained run(5);
  const fs::path path = save_checkpoint(folder_, run.checkpoint(5));
  EXPECT_EQ(path, folder_ / "step-00000005");
  EXPECT_THAT(names_in(folder_), ElementsAre("step-00000005"));
  EXPECT_THAT(names_in(path),
              ElementsAre("model.safetensors", "optimizer.safetensors", "training.safetensors"));

  Trained resumed = loaded(*latest_checkpoint(folder_));
  run.train(5, 20);
  resumed.train(5, 20);
  EXPECT_TRUE(same_state(run, resumed));
}

TEST_F(SaveCheckpoint, TheRestIsReadBack) {
  Checkpoint now = Trained(1).checkpoint(7);
  now.rank_tensors["residual"] = torch::ones({2});
  const CheckpointReader saved(save_checkpoint(folder_, now));
  EXPECT_EQ(saved.step(), 7);
  EXPECT_EQ(saved.ranks(), 1);
  EXPECT_EQ(saved.values(), now.values);
  EXPECT_TRUE(saved.tensors().at("mask").equal(torch::arange(4)));
  EXPECT_TRUE(saved.rank_tensors(0).at("residual").equal(torch::ones({2})));
  EXPECT_TRUE(saved.rank_tensors(1).empty());
  EXPECT_THAT(thrown_text([&] { saved.model("teacher"); }),
              HasSubstr("there is no model \"teacher\""));
  EXPECT_THAT(thrown_text([&] { saved.optimizer("sgd"); }),
              HasSubstr("there is no optimizer \"sgd\""));
}

TEST_F(SaveCheckpoint, AnOptimizerBeforeItsFirstStepHasNoFields) {
  const Trained run;
  const Trained other = loaded(save_checkpoint(folder_, run.checkpoint(0)));
  EXPECT_TRUE(other.optimizer.state().empty());
}

TEST_F(SaveCheckpoint, ReadsOnlyTheChosenParametersOfAnOptimizer) {
  const CheckpointReader saved(save_checkpoint(folder_, Trained(1).checkpoint(1)));
  const OptimizerState part = saved.optimizer("optimizer", std::set<std::string>{"conv.bias"});
  EXPECT_EQ(part.parameters.size(), 1u);
  EXPECT_TRUE(part.parameters.contains("conv.bias"));
  EXPECT_EQ(part.groups[0].parameters.size(), 6u);
}

TEST_F(SaveCheckpoint, OnlyTheLastOnesAreKept) {
  for (const std::int64_t step : {1, 2, 3, 4}) {
    save_checkpoint(folder_, {.step = step}, {.keep = 2});
  }
  fs::create_directory(folder_ / "step-5.mine");
  EXPECT_THAT(names_in(folder_), ElementsAre("step-00000003", "step-00000004", "step-5.mine"));
  save_checkpoint(folder_, {.step = 2}, {.keep = 2});  // a run that began again before step 3
  EXPECT_THAT(names_in(folder_), ElementsAre("step-00000002", "step-00000004", "step-5.mine"));
}

TEST_F(SaveCheckpoint, TheSameStepIsReplaced) {
  save_checkpoint(folder_, {.step = 3, .tensors = {{"old", torch::ones({1})}}});
  const auto path = save_checkpoint(folder_, {.step = 3, .tensors = {{"new", torch::ones({1})}}});
  EXPECT_TRUE(CheckpointReader(path).tensors().contains("new"));
  EXPECT_THAT(names_in(folder_), ElementsAre("step-00000003"));
}

TEST_F(SaveCheckpoint, WrongCallsSaveNothing) {
  const auto error = [this](const Checkpoint& checkpoint) {
    return thrown_text([&] { save_checkpoint(folder_, checkpoint); });
  };
  EXPECT_THAT(error({.step = -1}), HasSubstr("the negative step -1"));
  EXPECT_THAT(error({.models = {{"a/b", {}}}}), HasSubstr("is not letters, digits, - and _"));
  EXPECT_THAT(error({.models = {{"model", {{"w", torch::Tensor()}}}}}),
              HasSubstr("\"w\" is undefined"));
  EXPECT_THAT(error({.tensors = {{"w", torch::Tensor()}}}), HasSubstr("\"w\" is undefined"));
  Checkpoint half{.models = {{"model", {{"w", torch::ones({1})}}}},
                  .shards = {{"model", {{"w", {.offsets = {0}, .shape = {2}}}}}}};
  EXPECT_THAT(error(half), HasSubstr("only a part of the tensor \"w\""));
  half.shards["model"]["w"].offsets = {0, 0};
  EXPECT_THAT(error(half), HasSubstr("\"w\" has another number of dimensions"));
  half.shards["model"] = {{"x", {}}};
  EXPECT_THAT(error(half), HasSubstr("a shard \"x\" of \"model\", but no such tensor"));
  EXPECT_FALSE(latest_checkpoint(folder_).has_value());
}

TEST_F(SaveCheckpoint, WithoutSpaceTheLastOneStays) {
  const Trained run(1);
  const fs::path last = save_checkpoint(folder_, run.checkpoint(1));
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{4096, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const std::string text = thrown_text([&] { save_checkpoint(folder_, run.checkpoint(2)); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_THAT(text, ::testing::AllOf(::testing::StartsWith("resource"), HasSubstr("ulimit -f")));
  EXPECT_THAT(names_in(folder_), ElementsAre("step-00000001"));
  EXPECT_TRUE(same_state(loaded(last), run));
}

/// Reads all that a checkpoint has.
void read_all(const fs::path& path) {
  Trained other;
  const CheckpointReader saved(path);
  other.load(saved);
  saved.tensors();
  saved.rank_tensors(0);
}

class CutCheckpoint : public ::testing::TestWithParam<Writers> {};

TEST_P(CutCheckpoint, AtAnyByteOrWithoutAFileIsRefused) {
  const TemporaryFolder folder;
  Checkpoint now = Trained(1).checkpoint(1);
  now.rank_tensors["random"] = torch::ones({3});
  const fs::path path = save_checkpoint(folder.path(), now, {.writers = GetParam()});
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string whole{std::istreambuf_iterator<char>(file), {}};
    for (std::size_t size = whole.size(); size-- > 0;) {
      // All bytes of the header, and some of the data.
      if (size > 4000 && whole.size() - size > 100 && size % 37 != 0) continue;
      fs::resize_file(entry.path(), size);
      EXPECT_THAT(thrown_text([&] { read_all(path); }),
                  ::testing::StartsWith("resource: " + entry.path().string()))
          << size;
    }
    fs::remove(entry.path());
    if (entry.path().parent_path().filename() != "ranks") {
      EXPECT_THAT(thrown_text([&] { read_all(path); }),
                  ::testing::StartsWith("resource: " + path.string()));
    }
    std::ofstream(entry.path(), std::ios::binary) << whole;
  }
  EXPECT_EQ(thrown_text([&] { read_all(path); }), "no error");
}

INSTANTIATE_TEST_SUITE_P(Writers,
                         CutCheckpoint,
                         ::testing::Values(Writers::kRank0, Writers::kAllRanks),
                         [](const auto& writers) {
                           return writers.param == Writers::kRank0 ? "Rank0" : "AllRanks";
                         });

}  // namespace
}  // namespace peal::train
