// What a Trainer refuses.
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "peal/train/samplers/distributed_sampler.h"
#include "peal/train/testing/ranks.h"
#include "peal/train/trainer/testing/circle.h"
#include "peal/train/trainer/trainer.h"

namespace peal::train {
namespace {

using ::testing::AllOf;
using testing::Circle;
using ::testing::Each;
using ::testing::HasSubstr;
using testing::on_ranks;
using testing::Points;
using ::testing::StartsWith;

/// What a Trainer and its fit() throw on each of two ranks, with batches of 4 of ten points.
struct Fit {
  std::function<TrainerOptions(Rank)> options = [](Rank) { return TrainerOptions(); };
  std::function<DistributedSampler(Rank)> sampler = [](Rank rank) {
    return DistributedSampler(10, rank, 2);
  };

  std::vector<std::string> errors() const {
    return on_ranks(2, [this](const ProcessGroupPtr& group) {
      const auto net = std::make_shared<Circle>();
      torch::optim::SGD optimizer(net->parameters(), 0.1);
      DistributedSampler mine = sampler(group->rank());
      const auto loader = torch::data::make_data_loader(
          Points(10).map(torch::data::transforms::Stack<>()), mine, 4);
      return testing::thrown_text([&] {
        Trainer trainer(net, optimizer, group, options(group->rank()));
        trainer.fit(*loader, mine, [](auto& model, auto& batch) {
          return torch::nll_loss(model.forward(batch.data), batch.target);
        });
      });
    });
  }
};

TEST(TrainerErrorsTest, OptionsWithoutAMeaningAreRefused) {
  const auto errors = on_ranks(1, [](const ProcessGroupPtr& group) {
    const auto net = std::make_shared<Circle>();
    torch::optim::SGD optimizer(net->parameters(), 0.1);
    std::vector<std::string> texts;
    for (const TrainerOptions& options : {TrainerOptions{.epochs = 0},
                                          TrainerOptions{.accumulate = 0},
                                          TrainerOptions{.clip_norm = 0},
                                          TrainerOptions{.autocast = torch::kDouble},
                                          TrainerOptions{.save_every = -1},
                                          TrainerOptions{.keep = -1}}) {
      texts.push_back(testing::thrown_text([&] { Trainer(net, optimizer, group, options); }));
    }
    return texts;
  });
  EXPECT_THAT(errors[0], Each(HasSubstr("usage: a Trainer needs ")));
}

TEST(TrainerErrorsTest, RanksWithOtherOptionsAreAMismatchBeforeTheFirstStep) {
  const Fit other_epochs{.options = [](Rank rank) { return TrainerOptions{.epochs = 2 + rank}; }};
  EXPECT_THAT(
      other_epochs.errors(),
      Each(AllOf(StartsWith("mismatch: "), HasSubstr("epochs = 2"), HasSubstr("epochs = 3"))));
  const Fit other_steps{
      .options = [](Rank rank) { return TrainerOptions{.accumulate = 1 + rank}; }};
  EXPECT_THAT(other_steps.errors(), Each(HasSubstr("accumulate = 1")));
  const testing::TemporaryFolder folder;
  const Fit one_saves{.options = [&](Rank rank) {
    return TrainerOptions{.checkpoints = rank == 0 ? folder.path() : std::filesystem::path()};
  }};
  EXPECT_THAT(one_saves.errors(), Each(HasSubstr("checkpoints are not saved")));
  const Fit other_seed{.sampler = [](Rank rank) {
    return DistributedSampler(10, rank, 2, {.seed = static_cast<std::uint64_t>(rank)});
  }};
  EXPECT_THAT(other_seed.errors(), Each(HasSubstr("seed = 1")));
}

TEST(TrainerErrorsTest, ASamplerOfAnotherRankIsRefused) {
  const Fit of_five{.sampler = [](Rank rank) { return DistributedSampler(10, rank, 5); }};
  EXPECT_THAT(
      of_five.errors(),
      Each(HasSubstr("usage: rank 0: the sampler is for rank 0 of 5, but this is rank 0 of 2")));
  const Fit always_0{.sampler = [](Rank) { return DistributedSampler(10, 0, 2); }};
  EXPECT_THAT(always_0.errors(),
              Each(HasSubstr("rank 1: the sampler is for rank 0 of 2, but this is rank 1 of 2")));
}

TEST(TrainerErrorsTest, DataThatOnlyThisRankHasNeedASamplerForOneRank) {
  const Fit own{.sampler = [](Rank rank) {
    return DistributedSampler(10 - static_cast<std::size_t>(rank), 0, 1);
  }};
  EXPECT_THAT(own.errors(), Each("no error"));
  const testing::TemporaryFolder folder;
  const Fit saved{.options = [&](Rank) { return TrainerOptions{.checkpoints = folder.path()}; },
                  .sampler = own.sampler};
  EXPECT_THAT(saved.errors(), Each(StartsWith("unsupported: a Trainer cannot continue")));
}

TEST(TrainerErrorsTest, AnEpochWithoutAStepIsRefused) {
  const Fit too_few{.sampler = [](Rank rank) {
    return DistributedSampler(1, rank, 2, {.remainder = data::Remainder::kDrop});
  }};
  EXPECT_THAT(too_few.errors(), Each(StartsWith("usage: an epoch of 1 samples has no batch")));
}

}  // namespace
}  // namespace peal::train
