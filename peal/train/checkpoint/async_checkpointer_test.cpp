#include "peal/train/checkpoint/async_checkpointer.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "peal/train/checkpoint/checkpoint_folder.h"
#include "peal/train/checkpoint/checkpoint_reader.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using ::testing::Each;
using testing::on_ranks;
using ::testing::StartsWith;
using testing::TemporaryFolder;
using testing::thrown_text;

Checkpoint checkpoint_of(std::int64_t step, const torch::Tensor& weights) {
  Checkpoint now{.step = step};
  now.models["model"]["weights"] = weights;
  return now;
}

torch::Tensor saved_weights(const std::filesystem::path& folder, std::int64_t step) {
  return CheckpointReader(folder / checkpoint_name(step)).model("model").read("weights");
}

TEST(AsyncCheckpointer, TheNextStepMayChangeTheTensors) {
  const TemporaryFolder folder;
  const torch::Tensor weights = torch::zeros({1000, 100});
  AsyncCheckpointer checkpointer(folder.path());
  for (int step = 0; step < 5; ++step) {
    checkpointer.save(checkpoint_of(step, weights));
    weights.add_(1);  // while the thread writes
  }
  checkpointer.wait();
  for (int step = 0; step < 5; ++step) {
    EXPECT_TRUE(saved_weights(folder.path(), step).equal(torch::full({1000, 100}, step)));
  }
}

TEST(AsyncCheckpointer, TheDestructorWaitsForThePublication) {
  const TemporaryFolder folder;
  { AsyncCheckpointer(folder.path()).save(checkpoint_of(1, torch::ones({2}))); }
  EXPECT_TRUE(saved_weights(folder.path(), 1).equal(torch::ones({2})));
}

TEST(AsyncCheckpointer, AnErrorIsThrownOnceByTheNextCall) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "runs";
  std::ofstream(path) << "a file where the folder should be";
  AsyncCheckpointer checkpointer(path);
  const Checkpoint now = checkpoint_of(1, torch::ones({2}));
  checkpointer.save(now);
  EXPECT_THAT(thrown_text([&] { checkpointer.save(now); }), StartsWith("resource: cannot make"));
  std::filesystem::remove(path);
  EXPECT_EQ(thrown_text([&] { checkpointer.wait(); }), "no error");
  checkpointer.save(now);
  checkpointer.wait();
  EXPECT_TRUE(saved_weights(path, 1).equal(torch::ones({2})));
}

TEST(AsyncCheckpointer, RanksTrainWhileTheyWrite) {
  const TemporaryFolder folder;
  on_ranks(3, [&](const ProcessGroupPtr& group) {
    AsyncCheckpointer checkpointer(
        group, folder.path(), {.writers = Writers::kAllRanks, .keep = 2});
    const torch::Tensor weights = torch::zeros({300});
    for (int step = 1; step <= 6; ++step) {
      std::vector<float> gradients(300, 1);
      group->all_reduce(gradients);
      weights.add_(gradients[0]);
      checkpointer.save(checkpoint_of(step, weights));
    }
    checkpointer.wait();
    return true;
  });
  EXPECT_EQ(list_checkpoints(folder.path()).size(), 2u);
  EXPECT_TRUE(saved_weights(folder.path(), 6).equal(torch::full({300}, 18)));
  EXPECT_TRUE(saved_weights(folder.path(), 5).equal(torch::full({300}, 15)));
}

TEST(AsyncCheckpointer, AllRanksGetTheErrorOfOne) {
  const TemporaryFolder folder;
  const auto errors = on_ranks(3, [&](const ProcessGroupPtr& group) {
    const bool fails = group->rank() == 1;
    AsyncCheckpointer checkpointer(group,
                                   fails ? folder.path() / "elsewhere" : folder.path(),
                                   {.writers = Writers::kAllRanks});
    Checkpoint now = checkpoint_of(1, torch::ones({2}));
    now.rank_tensors["own"] = torch::ones({1});
    checkpointer.save(now);
    return thrown_text([&] { checkpointer.wait(); });
  });
  EXPECT_THAT(errors, Each(StartsWith("usage: rank 1: ")));
  EXPECT_FALSE(latest_checkpoint(folder.path()).has_value());
}

}  // namespace
}  // namespace peal::train
