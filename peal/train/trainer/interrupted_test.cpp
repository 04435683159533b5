// A Trainer whose ranks are processes that get Ctrl-C.
#include <signal.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <ostream>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/init/init.h"
#include "peal/launch/spawn.h"
#include "peal/train/checkpoint/checkpoint_folder.h"
#include "peal/train/checkpoint/checkpoint_reader.h"
#include "peal/train/samplers/distributed_sampler.h"
#include "peal/train/testing/nets.h"
#include "peal/train/testing/ranks.h"
#include "peal/train/trainer/trainer.h"

namespace peal::train {
namespace {

using ::testing::Each;
using torch::Tensor;

constexpr std::size_t kSamples = 60;
constexpr std::size_t kBatch = 3;  // of each of two ranks: 10 steps in an epoch
constexpr std::int64_t kEpochs = 3;
constexpr std::int64_t kSteps = 30;
constexpr std::int64_t kInterrupted = 13;  // a step in the second epoch

struct Pictures : torch::data::datasets::Dataset<Pictures> {
  torch::data::Example<> get(std::size_t index) override {
    const auto random = at::detail::createCPUGenerator(index);
    return {torch::randn({1, 8, 8}, random), torch::randint(4, {}, random, torch::kInt64)};
  }
  torch::optional<std::size_t> size() const override { return kSamples; }
};

/// How a run on two processes has ended, the same on both ranks.
struct Ending {
  RunEnd end = RunEnd::kComplete;
  std::int64_t steps = 0;
  int exit_code = 0;
  friend bool operator==(const Ending&, const Ending&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Ending& of) {
    return out << (of.end == RunEnd::kStopped ? "stopped" : "complete") << " at step " << of.steps
               << " with code " << of.exit_code;
  }
};

/// One rank. Backward of step kInterrupted is interrupted, if `is_interrupted`.
Ending train_rank(const std::filesystem::path& folder, bool is_interrupted) {
  torch::set_num_threads(1);
  const ProcessGroupPtr group = init_process_group();
  const auto net = testing::replicas<testing::SmallNet>(1)[0];
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  Trainer trainer(net, optimizer, group, {.epochs = kEpochs, .checkpoints = folder});
  std::int64_t steps = 0;
  trainer.on_step([&](const StepReport& report) { steps = report.step; });

  DistributedSampler sampler(kSamples, group->rank(), group->size(), {.seed = 3});
  const auto loader = torch::data::make_data_loader(
      Pictures().map(torch::data::transforms::Stack<>()), sampler, kBatch);
  const RunReport report = trainer.fit(*loader, sampler, [&](auto& model, auto& batch) {
    const Tensor output = model.forward(batch.data);
    if (is_interrupted && steps + 1 == kInterrupted) {
      output.register_hook([](const Tensor&) { ::raise(SIGINT); });  // runs in backward
    }
    return torch::nll_loss(output, batch.target);
  });
  return {report.end, report.steps, report.exit_code()};
}

/// Two ranks, of which `interrupted` get Ctrl-C.
std::vector<Ending> train_ranks(const std::filesystem::path& folder,
                                const std::set<Rank>& interrupted) {
  return spawn(2, [&](Rank rank) { return train_rank(folder, interrupted.contains(rank)); });
}

Tensor last_parameters(const std::filesystem::path& folder) {
  testing::SmallNet net;
  CheckpointReader(*latest_checkpoint(folder)).load_module("model", net);
  return testing::flat_parameters(net);
}

TEST(InterruptedTrainerTest, CtrlCInBackwardEndsAllRanksAfterTheNextStepWithACheckpoint) {
  const testing::TemporaryFolder whole;
  EXPECT_THAT(train_ranks(whole.path(), {}), Each(Ending{RunEnd::kComplete, kSteps}));
  for (const std::set<Rank>& interrupted : {std::set<Rank>{1}, std::set<Rank>{0, 1}}) {
    const testing::TemporaryFolder folder;
    EXPECT_THAT(train_ranks(folder.path(), interrupted),
                Each(Ending{RunEnd::kStopped, kInterrupted + 1, 130}));
    EXPECT_EQ(CheckpointReader(*latest_checkpoint(folder.path())).step(), kInterrupted + 1);
    EXPECT_THAT(train_ranks(folder.path(), {}), Each(Ending{RunEnd::kComplete, kSteps}));
    EXPECT_TRUE(last_parameters(folder.path()).allclose(last_parameters(whole.path()), 1e-4, 1e-6));
  }
}

}  // namespace
}  // namespace peal::train
