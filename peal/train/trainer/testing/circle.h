// A small training run for the tests of the Trainer, on any number of ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <torch/torch.h>

#include "peal/train/nn/sync_batch_norm.h"
#include "peal/train/optim/zero_redundancy_optimizer.h"
#include "peal/train/samplers/distributed_sampler.h"
#include "peal/train/testing/nets.h"
#include "peal/train/testing/ranks.h"
#include "peal/train/trainer/trainer.h"

namespace peal::train::testing {

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
  torch::Tensor x, y;
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
  torch::Tensor forward(const torch::Tensor& x) {
    const torch::Tensor hidden = torch::tanh(first(x));
    return torch::log_softmax(second(norm ? norm(hidden) : hidden), 1);
  }
  torch::nn::Linear first{2, 8}, second{8, 2};
  SyncBatchNorm norm{nullptr};
};

inline constexpr std::size_t kPoints = 45;  // not a multiple of anything
inline constexpr std::size_t kGlobalBatch = 12;

/// A test's exception in a callback.
struct Interruption {};

struct TestRun {
  TrainerOptions options = {};
  std::function<void(Trainer<Circle>&, const ProcessGroupPtr&)> prepare = {};
  int fits = 1;  // calls of fit; an Interruption ends one
  torch::data::DataLoaderOptions loader = {};
  std::uint64_t seed = 3;  // of the sampler
};

struct TestResult {
  torch::Tensor parameters;
  RunReport report;
  std::vector<double> losses;  // of the epochs
};

/// With `shares_state`, the state of the optimizer is divided among the ranks.
inline TestResult train(const ProcessGroupPtr& group,
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
  DistributedSampler sampler(kPoints,
                             group->rank(),
                             group->size(),
                             {.remainder = data::Remainder::kUneven, .seed = run.seed});
  torch::data::DataLoaderOptions loading = run.loader;
  loading.batch_size(kGlobalBatch / static_cast<std::size_t>(group->size()));
  const auto loader = torch::data::make_data_loader(
      Points(kPoints).map(torch::data::transforms::Stack<>()), sampler, loading);
  TestResult result;
  trainer.on_epoch(
      [&](const EpochReport& report) { result.losses.push_back(report.metrics.at("loss")); });
  if (run.prepare) run.prepare(trainer, group);
  for (int i = 0; i < run.fits; ++i) {
    try {
      result.report = trainer.fit(*loader, sampler, [](auto& model, auto& batch) {
        return torch::nll_loss(model.forward(batch.data), batch.target);
      });
    } catch (const Interruption&) {
    }
  }
  result.parameters = flat_parameters(*net);
  return result;
}

inline std::vector<TestResult> train_on(int ranks, const TestRun& run) {
  const auto nets = replicas<Circle>(ranks);
  return on_ranks(ranks, [&](const ProcessGroupPtr& group) {
    return train(group, nets[static_cast<std::size_t>(group->rank())], run);
  });
}

/// In the middle of the second epoch, by the last rank. The run ends after step 6.
inline void stop_after_step_5(Trainer<Circle>& trainer, const ProcessGroupPtr& group) {
  trainer.on_step([&trainer, group](const StepReport& report) {
    const bool is_last = group->rank() == group->size() - 1;
    if (report.step == 5 && is_last) trainer.request_stop();
  });
}

}  // namespace peal::train::testing
