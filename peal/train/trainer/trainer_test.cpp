#include "peal/train/trainer/trainer.h"

#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/train/nn/sync_batch_norm.h"
#include "peal/train/optim/zero_redundancy_optimizer.h"
#include "peal/train/samplers/distributed_sampler.h"
#include "peal/train/testing/nets.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using ::testing::Each;
using testing::flat_parameters;
using testing::on_ranks;
using testing::replicas;
using torch::Tensor;

/// Points of the plane, and whether they lie inside a circle.
struct Points : torch::data::datasets::Dataset<Points> {
  explicit Points(std::int64_t count) {
    const auto random = at::detail::createCPUGenerator(11);
    x = torch::rand({count, 2}, random, torch::kDouble) * 2 - 1;
    y = x.square().sum(1).lt(0.5).to(torch::kLong);
  }
  torch::data::Example<> get(std::size_t index) override {
    const auto i = static_cast<std::int64_t>(index);
    return {x[i], y[i]};
  }
  torch::optional<std::size_t> size() const override { return static_cast<std::size_t>(x.size(0)); }
  Tensor x, y;
};

/// Without dropout, so that the number of ranks makes no difference.
struct Circle : torch::nn::Module {
  Circle() {
    register_module("first", first);
    register_module("second", second);
    to(torch::kDouble);
  }
  /// Normalizes the hidden layer over the ranks of the group.
  void normalize(const ProcessGroupPtr& group) {
    norm = register_module("norm", SyncBatchNorm(torch::nn::BatchNormOptions(8), group));
    norm->to(torch::kDouble);
  }
  Tensor forward(const Tensor& x) {
    const Tensor hidden = torch::tanh(first(x));
    return torch::log_softmax(second(norm ? norm(hidden) : hidden), 1);
  }
  torch::nn::Linear first{2, 8}, second{8, 2};
  SyncBatchNorm norm{nullptr};
};

constexpr std::size_t kPoints = 45;  // not a multiple of anything
constexpr std::size_t kGlobalBatch = 12;

DistributedSampler uneven_sampler(const ProcessGroup& group) {
  return {kPoints, group.rank(), group.size(), {.remainder = data::Remainder::kUneven, .seed = 3}};
}

auto loader_of(const DistributedSampler& sampler, const ProcessGroup& group) {
  return torch::data::make_data_loader(Points(kPoints).map(torch::data::transforms::Stack<>()),
                                       sampler,
                                       kGlobalBatch / static_cast<std::size_t>(group.size()));
}

constexpr auto kLoss = [](auto& model, auto& batch) {
  return torch::nll_loss(model.forward(batch.data), batch.target);
};

struct TestRun {
  TrainerOptions options = {};
  std::function<void(Trainer<Circle>&, const ProcessGroupPtr&)> prepare = {};
};

struct TestResult {
  Tensor parameters;
  RunReport report;
  std::vector<double> losses;  // of the epochs
};

/// With `shares_state`, the state of the optimizer is divided among the ranks.
TestResult train(const ProcessGroupPtr& group,
                 const std::shared_ptr<Circle>& net,
                 const TestRun& run,
                 bool shares_state = false) {
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  if (shares_state) {
    optimizer = std::make_unique<ZeroRedundancyOptimizer<torch::optim::AdamW>>(
        group, net, torch::optim::AdamWOptions(0.02));
  } else {
    optimizer =
        std::make_unique<torch::optim::AdamW>(net->parameters(), torch::optim::AdamWOptions(0.02));
  }
  Trainer trainer(net, *optimizer, group, run.options);
  DistributedSampler sampler = uneven_sampler(*group);
  const auto loader = loader_of(sampler, *group);
  TestResult result;
  trainer.on_epoch(
      [&](const EpochReport& report) { result.losses.push_back(report.metrics.at("loss")); });
  if (run.prepare) run.prepare(trainer, group);
  result.report = trainer.fit(*loader, sampler, kLoss);
  result.parameters = flat_parameters(*net);
  return result;
}

std::vector<TestResult> train_on(int ranks, const TestRun& run) {
  const auto nets = replicas<Circle>(ranks);
  return on_ranks(ranks, [&](const ProcessGroupPtr& group) {
    return train(group, nets[static_cast<std::size_t>(group->rank())], run);
  });
}

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

/// In the middle of the second epoch, by the last rank. The run ends after step 6.
void stop_after_step_5(Trainer<Circle>& trainer, const ProcessGroupPtr& group) {
  trainer.on_step([&trainer, group](const StepReport& report) {
    const bool is_last = group->rank() == group->size() - 1;
    if (report.step == 5 && is_last) trainer.request_stop();
  });
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

/// Two calls of fit() by one Trainer; the first is stopped in the second epoch.
void expect_that_a_second_call_continues(const std::filesystem::path& checkpoints) {
  const TestResult expected = train_on(1, {.options = {.epochs = 3}})[0];
  const auto nets = replicas<Circle>(2);
  const auto reports = on_ranks(2, [&](const ProcessGroupPtr& group) {
    const auto& net = nets[static_cast<std::size_t>(group->rank())];
    torch::optim::AdamW optimizer(net->parameters(), torch::optim::AdamWOptions(0.02));
    Trainer trainer(net, optimizer, group, {.epochs = 3, .checkpoints = checkpoints});
    stop_after_step_5(trainer, group);
    DistributedSampler sampler = uneven_sampler(*group);
    const auto loader = loader_of(sampler, *group);
    return std::array{trainer.fit(*loader, sampler, kLoss),
                      trainer.fit(*loader, sampler, kLoss),
                      trainer.fit(*loader, sampler, kLoss)};
  });
  for (const auto& [first, second, third] : reports) {
    EXPECT_EQ(first.end, RunEnd::kStopped);
    EXPECT_EQ(first.steps, 6);
    EXPECT_EQ(second.end, RunEnd::kComplete);
    EXPECT_EQ(second.steps, expected.report.steps);
    EXPECT_EQ(third.end, RunEnd::kComplete);
    EXPECT_EQ(third.steps, expected.report.steps);
  }
  for (const auto& net : nets) {
    EXPECT_LT((flat_parameters(*net) - expected.parameters).abs().max().item<double>(), 1e-9);
  }
}

TEST(TrainerTest, ASecondCallOfFitContinuesTheRunWithAndWithoutCheckpoints) {
  const testing::TemporaryFolder folder;
  expect_that_a_second_call_continues(folder.path());
  expect_that_a_second_call_continues({});
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

TEST(TrainerTest, OptionsWithoutAMeaningAreRefused) {
  const auto errors = on_ranks(1, [](const ProcessGroupPtr& group) {
    const auto net = std::make_shared<Circle>();
    torch::optim::SGD optimizer(net->parameters(), 0.1);
    return testing::thrown_text([&] { Trainer(net, optimizer, group, {.accumulate = 0}); });
  });
  EXPECT_THAT(errors, Each(::testing::HasSubstr("at least 1")));
}

}  // namespace
}  // namespace peal::train
