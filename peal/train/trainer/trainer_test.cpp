#include "peal/train/trainer/trainer.h"

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/train/checkpoint/checkpoint_folder.h"
#include "peal/train/nn/sync_batch_norm.h"
#include "peal/train/optim/zero_redundancy_optimizer.h"
#include "peal/train/samplers/distributed_sampler.h"
#include "peal/train/testing/nets.h"
#include "peal/train/testing/ranks.h"
#include "peal/train/trainer/testing/circle.h"

namespace peal::train {
namespace {

using testing::Circle;
using ::testing::Each;
using testing::flat_parameters;
using testing::Interruption;
using testing::kPoints;
using testing::on_ranks;
using testing::Points;
using testing::replicas;
using testing::stop_after_step_5;
using testing::TestResult;
using testing::TestRun;
using testing::train;
using testing::train_on;
using torch::Tensor;

void expect_same(const std::vector<TestResult>& ranks, const TestResult& alone) {
  for (const TestResult& one : ranks) {
    EXPECT_TRUE(one.parameters.equal(ranks[0].parameters)) << "parameters differ between ranks";
    EXPECT_LT((one.parameters - alone.parameters).abs().max().item<double>(), 1e-9);
    ASSERT_EQ(one.losses.size(), alone.losses.size());
    for (std::size_t i = 0; i < one.losses.size(); ++i) {
      EXPECT_NEAR(one.losses[i], alone.losses[i], 1e-9);
    }
    EXPECT_EQ(one.report.steps, alone.report.steps);
  }
}

TEST(TrainerTest, RanksTrainLikeOneProcess) {
  for (const int accumulate : {1, 2}) {
    const TestRun run{.options = {.epochs = 3,
                                  .accumulate = accumulate,
                                  .clip_norm = 0.5,
                                  .learning_rate = cosine_factor(20, 3)}};
    const TestResult alone = train_on(1, run)[0];
    EXPECT_LT(alone.losses.back(), alone.losses.front());
    for (const int ranks : {2, 3, 4}) expect_same(train_on(ranks, run), alone);
  }
}

TEST(TrainerTest, RanksThatNormalizeTogetherTrainLikeOneProcess) {
  const auto train_normalized = [](int ranks) {
    const auto nets = replicas<Circle>(ranks);
    return on_ranks(ranks, [&](const ProcessGroupPtr& group) {
      const auto& net = nets[static_cast<std::size_t>(group->rank())];
      net->normalize(group);
      return train(group, net, {.options = {.epochs = 3}});
    });
  };
  const TestResult alone = train_normalized(1)[0];
  // The last batches of an epoch have different sizes.
  for (const int ranks : {2, 4}) expect_same(train_normalized(ranks), alone);
}

TEST(TrainerTest, ARunContinuesOnAnyNumberOfRanksAsIfItHadNotStopped) {
  const TestRun whole{.options = {.epochs = 3}};
  const TestResult expected = train_on(1, whole)[0];
  for (const int before : {1, 2, 3}) {
    for (const int after : {1, 2, 3, 4}) {
      const testing::TemporaryFolder folder;
      const TestRun first{.options = {.epochs = 3, .checkpoints = folder.path()},
                          .prepare = stop_after_step_5};
      for (const TestResult& one : train_on(before, first)) {
        EXPECT_EQ(one.report.end, RunEnd::kStopped);
        EXPECT_EQ(one.report.steps, 6);
      }
      const auto second = train_on(after, {.options = {.epochs = 3, .checkpoints = folder.path()}});
      for (const TestResult& one : second) {
        EXPECT_EQ(one.report.end, RunEnd::kComplete);
        EXPECT_EQ(one.report.steps, expected.report.steps);
        EXPECT_LT((one.parameters - expected.parameters).abs().max().item<double>(), 1e-9)
            << before << " ranks, then " << after;
      }
    }
  }
}

TEST(TrainerTest, ASignalEndsTheRunAfterTheStepWithACheckpoint) {
  for (const int number : {SIGINT, SIGTERM}) {
    const testing::TemporaryFolder folder;
    const TestRun run{.options = {.epochs = 3, .checkpoints = folder.path()},
                      .prepare = [number](Trainer<Circle>& trainer, const ProcessGroupPtr& group) {
                        trainer.on_step([number, group](const StepReport& report) {
                          if (report.step == 5 && group->rank() == 1) ::raise(number);
                        });
                      }};
    for (const TestResult& one : train_on(2, run)) {
      EXPECT_EQ(one.report.end, RunEnd::kStopped);
      EXPECT_EQ(one.report.steps, 6);
      EXPECT_EQ(one.report.exit_code(), 128 + number);
      EXPECT_EQ(one.report.checkpoint, folder.path() / checkpoint_name(6));
      EXPECT_EQ(one.report.checkpoint, latest_checkpoint(folder.path()));
    }
  }
}

TEST(TrainerTest, ASecondFitContinuesWhereTheFirstWasStopped) {
  const TestResult expected = train_on(1, {.options = {.epochs = 3}})[0];
  for (const std::int64_t last : {3, 4, 5}) {  // step 4 ends the first epoch
    const TestRun run{.options = {.epochs = 3},
                      .prepare =
                          [last](Trainer<Circle>& trainer, const ProcessGroupPtr&) {
                            trainer.on_step([&trainer, last](const StepReport& report) {
                              if (report.step == last - 1) trainer.request_stop();
                            });
                          },
                      .fits = 2};
    for (const TestResult& one : train_on(2, run)) {
      EXPECT_EQ(one.report.end, RunEnd::kComplete);
      EXPECT_EQ(one.report.steps, expected.report.steps) << "stopped after step " << last;
      EXPECT_LT((one.parameters - expected.parameters).abs().max().item<double>(), 1e-9);
    }
  }
}

TEST(TrainerTest, ASecondFitContinuesAfterACallbackHasThrown) {
  const TestResult expected = train_on(1, {.options = {.epochs = 3}})[0];
  const TestRun run{
      .options = {.epochs = 3},
      .prepare =
          [](Trainer<Circle>& trainer, const ProcessGroupPtr&) {
            trainer.on_step([](const StepReport& report) {
              if (report.step == 6) throw Interruption();
            });
            trainer.on_step([](const StepReport& report) { EXPECT_LE(report.samples, 6); });
          },
      .fits = 2};
  for (const TestResult& one : train_on(2, run)) {
    EXPECT_EQ(one.report.steps, expected.report.steps);
    EXPECT_LT((one.parameters - expected.parameters).abs().max().item<double>(), 1e-9);
  }
}

TEST(TrainerTest, ARunThatWasSavedAtTheEndOfAnEpochContinuesWithTheNext) {
  for (const bool drop_last : {false, true}) {
    const std::int64_t steps = drop_last ? 3 : 4;  // of an epoch
    const testing::TemporaryFolder folder;
    TestRun run{.options = {.epochs = 2, .checkpoints = folder.path(), .save_every = steps},
                .loader = torch::data::DataLoaderOptions().drop_last(drop_last)};
    run.prepare = [](Trainer<Circle>& trainer, const ProcessGroupPtr&) {
      trainer.on_epoch([](const EpochReport&) { throw Interruption(); });
    };
    train_on(2, run);
    std::vector<std::int64_t> epochs;
    run.prepare = [&](Trainer<Circle>& trainer, const ProcessGroupPtr& group) {
      trainer.on_epoch([&, group](const EpochReport& report) {
        if (group->rank() == 0) epochs.push_back(report.epoch);
      });
    };
    const TestResult second = train_on(2, run)[0];
    EXPECT_EQ(second.report.steps, 2 * steps);
    EXPECT_THAT(epochs, ::testing::ElementsAre(1));
  }
}

TEST(TrainerTest, AStepIsSavedOnce) {
  const testing::TemporaryFolder folder;
  std::vector<std::int64_t> saved;
  const TestRun run{.options = {.epochs = 2, .checkpoints = folder.path(), .save_every = 4},
                    .prepare = [&](Trainer<Circle>& trainer, const ProcessGroupPtr& group) {
                      trainer.on_save([&, group](Checkpoint& now) {
                        if (group->rank() == 0) saved.push_back(now.step);
                      });
                    }};
  train_on(2, run);
  EXPECT_THAT(saved, ::testing::ElementsAre(4, 8));
}

TEST(TrainerTest, APositionInAnotherOrderIsRefused) {
  const testing::TemporaryFolder folder;
  TestRun run{.options = {.epochs = 1, .checkpoints = folder.path()}};
  run.prepare = [](Trainer<Circle>& trainer, const ProcessGroupPtr&) {
    trainer.on_step([&trainer](const StepReport& report) {
      if (report.step == 1) trainer.request_stop();
    });
  };
  train_on(2, run);
  run.seed = 4;
  EXPECT_THAT(testing::thrown_text([&] { train_on(2, run); }),
              ::testing::AllOf(::testing::HasSubstr("usage"), ::testing::HasSubstr("seed 3")));
}

/// The parameters of rank 0 after each step, by the step.
std::map<std::int64_t, Tensor> steps_of_run(int ranks, const TrainerOptions& options) {
  std::map<std::int64_t, Tensor> steps;
  train_on(ranks, {.options = options, .prepare = [&](auto& trainer, const ProcessGroupPtr& group) {
                     if (group->rank() != 0) return;
                     trainer.on_step([&](const StepReport& report) {
                       steps[report.step] = flat_parameters(*trainer.model());
                     });
                   }});
  return steps;
}

TEST(TrainerTest, AfterAStopInAnEpochEachStepIsThatOfTheWholeRun) {
  const testing::TemporaryFolder folder;
  TrainerOptions options{.epochs = 7, .clip_norm = 0.5, .learning_rate = cosine_factor(28, 3)};
  const auto whole = steps_of_run(2, options);
  options.checkpoints = folder.path();
  train_on(2, {.options = options, .prepare = stop_after_step_5});
  const auto rest = steps_of_run(3, options);
  EXPECT_EQ(rest.begin()->first, 7);
  EXPECT_GE(rest.size(), 20u);
  for (const auto& [step, parameters] : rest) {
    EXPECT_LT((parameters - whole.at(step)).abs().max().item<double>(), 1e-9) << step;
  }
  EXPECT_EQ(rest.rbegin()->first, whole.rbegin()->first);
}

TEST(TrainerTest, ARunWithASharedOptimizerStateContinuesWithAWholeOne) {
  const testing::TemporaryFolder folder;
  const TestResult expected = train_on(1, {.options = {.epochs = 3}})[0];
  const auto run = [&](int ranks, bool shares, std::int64_t epochs) {
    const auto nets = replicas<Circle>(ranks);
    return on_ranks(ranks, [&](const ProcessGroupPtr& group) {
      return train(group,
                   nets[static_cast<std::size_t>(group->rank())],
                   {.options = {.epochs = epochs, .checkpoints = folder.path()}},
                   shares);
    });
  };
  run(3, true, 1);
  run(1, false, 2);
  for (const TestResult& one : run(2, true, 3)) {
    EXPECT_LT((one.parameters - expected.parameters).abs().max().item<double>(), 1e-9);
  }
}

/// Three calls of fit(): the first is stopped in the second epoch, the second completes the run.
void expect_that_more_calls_continue(const std::filesystem::path& checkpoints) {
  const TestResult expected = train_on(1, {.options = {.epochs = 3}})[0];
  const TestRun run{.options = {.epochs = 3, .checkpoints = checkpoints},
                    .prepare = stop_after_step_5,
                    .fits = 3};
  for (const TestResult& one : train_on(2, run)) {
    EXPECT_EQ(one.report.end, RunEnd::kComplete);
    EXPECT_EQ(one.report.steps, expected.report.steps);
    EXPECT_LT((one.parameters - expected.parameters).abs().max().item<double>(), 1e-9);
  }
}

TEST(TrainerTest, MoreCallsOfFitContinueTheRunWithAndWithoutCheckpoints) {
  const testing::TemporaryFolder folder;
  expect_that_more_calls_continue(folder.path());
  expect_that_more_calls_continue({});
}

TEST(TrainerTest, ACompleteRunIsNotTrainedAgain) {
  const testing::TemporaryFolder folder;
  const TestRun run{.options = {.epochs = 2, .checkpoints = folder.path()}};
  const TestResult first = train_on(2, run)[0];
  const TestResult second = train_on(2, run)[0];
  EXPECT_TRUE(second.parameters.equal(first.parameters));
  EXPECT_EQ(second.report.steps, first.report.steps);
  EXPECT_TRUE(second.losses.empty());
}

TEST(TrainerTest, CheckpointsComeEveryFewStepsAndOldOnesAreRemoved) {
  const testing::TemporaryFolder folder;
  const TestResult result = train_on(
      2, {.options = {.epochs = 2, .checkpoints = folder.path(), .save_every = 3, .keep = 2}})[0];
  EXPECT_EQ(result.report.steps, 8);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    names.push_back(entry.path().filename());
  }
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("step-00000006", "step-00000008"));
}

TEST(TrainerTest, CallbacksAddToTheCheckpointAndReadItAgain) {
  const testing::TemporaryFolder folder;
  std::vector<double> seen(2);
  const TestRun run{.options = {.epochs = 1, .checkpoints = folder.path()},
                    .prepare = [&](Trainer<Circle>& trainer, const ProcessGroupPtr& group) {
                      trainer.on_save([](Checkpoint& now) { now.values.set("best", 0.75); });
                      trainer.on_load([&seen, group](const CheckpointReader& saved) {
                        seen[static_cast<std::size_t>(group->rank())] =
                            saved.values().number<double>("best");
                      });
                    }};
  train_on(2, run);
  train_on(2, run);
  EXPECT_THAT(seen, Each(0.75));
}

TEST(TrainerTest, MixedPrecisionTrainsAndItsParametersStayEqualOnAllRanks) {
  for (const auto type : {torch::kBFloat16, torch::kHalf}) {
    const auto results = on_ranks(2, [&](const ProcessGroupPtr& group) {
      const auto net = std::make_shared<Circle>();
      net->to(torch::kFloat);
      torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.3).momentum(0.9));
      Trainer trainer(net, optimizer, group, {.epochs = 12, .clip_norm = 1.0, .autocast = type});
      DistributedSampler sampler(kPoints, group->rank(), group->size());
      const auto loader = torch::data::make_data_loader(
          Points(kPoints).map(torch::data::transforms::Stack<>()), sampler, 6);
      std::vector<double> losses;
      trainer.on_epoch(
          [&](const EpochReport& report) { losses.push_back(report.metrics.at("loss")); });
      trainer.fit(*loader, sampler, [](auto& model, auto& batch) {
        return torch::nll_loss(model.forward(batch.data.to(torch::kFloat)).to(torch::kFloat),
                               batch.target);
      });
      return std::pair(losses, flat_parameters(*net));
    });
    const auto& losses = results[0].first;
    EXPECT_LT(losses.back(), losses.front());
    EXPECT_TRUE(results[0].second.equal(results[1].second));
  }
}

TEST(TrainerTest, EvaluationCountsEachSampleOnceWithAnyNumberOfRanks) {
  std::vector<double> accuracies;
  for (const int ranks : {1, 2, 4}) {
    const auto nets = replicas<Circle>(ranks);
    const auto results = on_ranks(ranks, [&](const ProcessGroupPtr& group) {
      const auto& net = nets[static_cast<std::size_t>(group->rank())];
      torch::optim::SGD optimizer(net->parameters(), 0.1);
      Trainer trainer(net, optimizer, group);
      const DistributedSampler each_once(
          kPoints,
          group->rank(),
          group->size(),
          {.order = SamplerOptions::Order::kSequential, .remainder = data::Remainder::kUneven});
      const auto loader = torch::data::make_data_loader(
          Points(kPoints).map(torch::data::transforms::Stack<>()), each_once, 8);
      return trainer.evaluate(*loader, [](auto& model, auto& batch, Metrics& metrics) {
        const auto right =
            model.forward(batch.data).argmax(1).eq(batch.target).sum().template item<double>();
        const auto samples = static_cast<double>(batch.target.size(0));
        metrics.add("accuracy", right / samples, samples);
      });
    });
    for (const auto& means : results) accuracies.push_back(means.at("accuracy"));
  }
  EXPECT_THAT(accuracies, Each(::testing::DoubleNear(accuracies[0], 1e-12)));
}

TEST(TrainerTest, AnEvaluationThatThrowsLeavesTheModuleInItsMode) {
  on_ranks(1, [](const ProcessGroupPtr& group) {
    const auto net = std::make_shared<Circle>();
    net->second->eval();
    torch::optim::SGD optimizer(net->parameters(), 0.1);
    Trainer trainer(net, optimizer, group);
    std::vector<int> batches = {1};
    const auto fail = [](auto&, int, Metrics&) { throw Interruption(); };
    EXPECT_THROW(trainer.evaluate(batches, fail), Interruption);
    EXPECT_TRUE(net->is_training());
    EXPECT_TRUE(net->first->is_training());
    EXPECT_FALSE(net->second->is_training());
    return true;
  });
}

}  // namespace
}  // namespace peal::train
