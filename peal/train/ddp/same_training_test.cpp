// Training on several ranks gives the same result as one process that trains on all their batches.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/train/ddp/distributed_data_parallel.h"
#include "peal/train/ddp/parameters.h"
#include "peal/train/tensors/tensors.h"
#include "peal/train/testing/nets.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using testing::flat_parameters;
using testing::on_ranks;
using testing::replicas;
using testing::SmallNet;

constexpr int kSteps = 30;
constexpr std::int64_t kGlobalBatch = 24;  // a multiple of 2, 3 and 4 ranks

struct Batch {
  Tensor images;
  Tensor labels;
};

/// Whether each step has new gradient tensors, or reuses those of the last step.
enum class OldGradients { kDropped, kZeroed };

/// The result of a run of `kSteps` steps.
struct Outcome {
  std::vector<double> losses;  // of the global batch
  Tensor parameters;
};

/// Rank r's part of a batch.
Tensor part(const Tensor& batch, const ProcessGroup& group) {
  return batch.chunk(group.size())[static_cast<std::size_t>(group.rank())];
}

std::vector<Batch> batches() {
  const auto random = at::detail::createCPUGenerator(7);
  std::vector<Batch> all;
  for (int step = 0; step < kSteps; ++step) {
    const Tensor labels = torch::randint(4, {kGlobalBatch}, random, torch::kInt64);
    // The class is the bright quarter of the picture.
    Tensor images = torch::randn({kGlobalBatch, 1, 8, 8}, random);
    for (std::int64_t i = 0; i < kGlobalBatch; ++i) {
      const auto quarter = labels[i].item<std::int64_t>();
      images[i][0].narrow(0, quarter / 2 * 4, 4).narrow(1, quarter % 2 * 4, 4).add_(2);
    }
    all.push_back({images, labels});
  }
  return all;
}

/// Trains, and calls `average` after each backward pass to average the gradients.
template <class Average>
Outcome train(SmallNet& net,
              const std::vector<Batch>& data,
              ProcessGroup* group,
              Average&& average,
              OldGradients old_gradients) {
  torch::optim::SGD optimizer(net.parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  Outcome run;
  for (const Batch& batch : data) {
    optimizer.zero_grad(/*set_to_none=*/old_gradients == OldGradients::kDropped);
    const Tensor images = group ? part(batch.images, *group) : batch.images;
    const Tensor labels = group ? part(batch.labels, *group) : batch.labels;
    Tensor loss = torch::nll_loss(net.forward(images), labels);
    loss.backward();
    average();
    optimizer.step();
    loss = loss.detach().to(torch::kFloat64);
    if (group) all_reduce(*group, loss, {.op = ReduceOp::kAvg});
    run.losses.push_back(loss.item<double>());
  }
  run.parameters = flat_parameters(net);
  return run;
}

Outcome train_alone(const std::vector<Batch>& data) {
  torch::set_num_threads(1);
  return train(
      *replicas<SmallNet>(1)[0], data, nullptr, [] {}, OldGradients::kDropped);
}

void expect_same_training(const std::vector<Outcome>& ranks, const Outcome& alone) {
  EXPECT_LT(alone.losses.back(), 0.5 * alone.losses.front()) << "nothing was learned";
  for (const Outcome& run : ranks) {
    EXPECT_TRUE(run.parameters.equal(ranks[0].parameters)) << "parameters differ between ranks";
    for (std::size_t step = 0; step < alone.losses.size(); ++step) {
      EXPECT_NEAR(run.losses[step], alone.losses[step], 1e-4 * alone.losses[step])
          << "step " << step << " of " << ranks.size() << " ranks";
    }
    EXPECT_TRUE(run.parameters.allclose(alone.parameters, 1e-3, 1e-5)) << ranks.size();
  }
}

class SameTraining : public ::testing::TestWithParam<int> {};

TEST_P(SameTraining, ByDistributedDataParallel) {
  const std::vector<Batch> data = batches();
  const Outcome alone = train_alone(data);
  for (const auto old_gradients : {OldGradients::kDropped, OldGradients::kZeroed}) {
    for (const Bytes cap : {25_MiB, 600_B}) {  // one bucket, several
      const auto nets = replicas<SmallNet>(GetParam());
      const auto runs = on_ranks(GetParam(), [&](const ProcessGroupPtr& group) {
        const auto& net = nets[static_cast<std::size_t>(group->rank())];
        DistributedDataParallel model(net, group, {.bucket_cap = cap, .first_bucket_cap = cap});
        return train(
            *net, data, group.get(), [] {}, old_gradients);
      });
      expect_same_training(runs, alone);
    }
  }
}

TEST_P(SameTraining, ByAveragingGradientsByHand) {
  const std::vector<Batch> data = batches();
  const Outcome alone = train_alone(data);
  const auto nets = replicas<SmallNet>(GetParam());
  const auto runs = on_ranks(GetParam(), [&](const ProcessGroupPtr& group) {
    SmallNet& net = *nets[static_cast<std::size_t>(group->rank())];
    return train(
        net, data, group.get(), [&] { average_gradients(*group, net); }, OldGradients::kDropped);
  });
  expect_same_training(runs, alone);
}

INSTANTIATE_TEST_SUITE_P(Ranks, SameTraining, ::testing::Values(2, 3, 4), [](const auto& ranks) {
  return std::to_string(ranks.param) + "Ranks";
});

}  // namespace
}  // namespace peal::train
