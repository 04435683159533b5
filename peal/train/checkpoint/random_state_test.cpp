#include "peal/train/checkpoint/random_state.h"

#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "peal/train/checkpoint/save_checkpoint.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using ::testing::HasSubstr;
using testing::TemporaryFolder;
using testing::thrown_text;

std::filesystem::path save_now(const std::filesystem::path& folder, std::int64_t step) {
  Checkpoint now{.step = step};
  save_random_state(now);
  return save_checkpoint(folder, now);
}

TEST(RandomState, TheSameNumbersFollowTheSave) {
  const TemporaryFolder folder;
  torch::manual_seed(5);
  torch::randn({3});  // leaves half of a pair in the generator
  const CheckpointReader saved(save_now(folder.path(), 1));
  const torch::Tensor expected = torch::randn({100});
  torch::manual_seed(6);
  load_random_state(saved, 0, 1);
  EXPECT_TRUE(torch::randn({100}).equal(expected));
}

TEST(RandomState, OnAnotherNumberOfRanksEachRankGetsItsSeed) {
  const TemporaryFolder folder;
  torch::manual_seed(5);
  const CheckpointReader first(save_now(folder.path(), 1));
  const CheckpointReader second(save_now(folder.path(), 2));
  torch::manual_seed(6);
  const CheckpointReader other_seed(save_now(folder.path(), 3));
  std::set<std::int64_t> numbers;
  const auto number = [&](const CheckpointReader& saved, Rank rank) {
    load_random_state(saved, rank, 3);
    return torch::randint(std::int64_t{1} << 62, {1}, torch::kInt64).item<std::int64_t>();
  };
  for (const Rank rank : {0, 1, 2}) {
    for (const CheckpointReader* saved : {&first, &second, &other_seed}) {
      numbers.insert(number(*saved, rank));
      EXPECT_EQ(number(*saved, rank), number(*saved, rank));
    }
  }
  EXPECT_EQ(numbers.size(), 9u);
}

TEST(RandomState, ACheckpointWithoutOneIsAnError) {
  const TemporaryFolder folder;
  const CheckpointReader saved(save_checkpoint(folder.path(), {.step = 1}));
  EXPECT_THAT(thrown_text([&] { load_random_state(saved, 0, 1); }), HasSubstr("random.seed"));
}

}  // namespace
}  // namespace peal::train
