#include "peal/train/ddp/uneven.h"

#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/train/ddp/distributed_data_parallel.h"
#include "peal/train/testing/nets.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using testing::flat_parameters;
using testing::on_ranks;
using testing::replicas;
using testing::SmallNet;
using torch::Tensor;

struct UnevenBatch {
  Tensor images, labels;
};

/// Rank r has `batches(r)` batches, of sizes that differ between ranks and batches.
std::vector<UnevenBatch> batches_of(Rank rank, std::size_t count) {
  const auto random = at::detail::createCPUGenerator(100 + static_cast<std::uint64_t>(rank));
  std::vector<UnevenBatch> all;
  for (std::size_t i = 0; i < count; ++i) {
    const auto size = static_cast<std::int64_t>(1 + (static_cast<std::size_t>(rank) * 3 + i) % 5);
    all.push_back({torch::randn({size, 1, 8, 8}, random, torch::kDouble),
                   torch::randint(4, {size}, random, torch::kInt64)});
  }
  return all;
}

std::unique_ptr<torch::optim::Adam> optimizer_of(SmallNet& net) {
  return std::make_unique<torch::optim::Adam>(net.parameters(),
                                              torch::optim::AdamOptions(0.01).weight_decay(0.01));
}

/// One process that has the batches of all ranks: step i is on the i-th batch of each rank.
Tensor train_on_all(SmallNet& net, const std::vector<std::size_t>& counts, int epochs) {
  const auto optimizer = optimizer_of(net);
  for (int epoch = 0; epoch < epochs; ++epoch) {
    for (std::size_t i = 0; i < *std::ranges::max_element(counts); ++i) {
      std::vector<Tensor> images, labels;
      for (std::size_t rank = 0; rank < counts.size(); ++rank) {
        if (i >= counts[rank]) continue;
        const UnevenBatch batch = batches_of(static_cast<Rank>(rank), counts[rank])[i];
        images.push_back(batch.images);
        labels.push_back(batch.labels);
      }
      optimizer->zero_grad();
      torch::nll_loss(net.forward(torch::cat(images)), torch::cat(labels)).backward();
      optimizer->step();
    }
  }
  return flat_parameters(net);
}

Tensor train_uneven(SmallNet& net,
                    DistributedDataParallel<SmallNet>& model,
                    std::vector<UnevenBatch>& batches,
                    int epochs) {
  const auto optimizer = optimizer_of(net);
  for (int epoch = 0; epoch < epochs; ++epoch) {
    for (const UnevenBatch& batch : uneven(batches, model, [&] { optimizer->step(); })) {
      optimizer->zero_grad();
      torch::nll_loss(model.forward(batch.images), batch.labels).backward();
      optimizer->step();
    }
  }
  return flat_parameters(net);
}

TEST(UnevenTest, RanksWithDifferentNumbersAndSizesOfBatchesEqualOneProcess) {
  const std::vector<std::vector<std::size_t>> cases = {
      {3, 5}, {5, 3}, {4, 4}, {0, 6}, {6, 0}, {2, 7, 4}, {1, 0, 3, 2}};
  for (const std::vector<std::size_t>& counts : cases) {
    const int ranks = static_cast<int>(counts.size());
    const auto nets = replicas<SmallNet>(ranks + 1);
    for (const auto& net : nets) net->to(torch::kDouble);
    const Tensor alone = train_on_all(*nets.back(), counts, 3);
    const auto parameters = on_ranks(ranks, [&](const ProcessGroupPtr& group) {
      const auto rank = static_cast<std::size_t>(group->rank());
      DistributedDataParallel model(nets[rank], group, {.average = Average::kBySamples});
      std::vector<UnevenBatch> batches = batches_of(group->rank(), counts[rank]);
      return train_uneven(*nets[rank], model, batches, 3);
    });
    for (const Tensor& one : parameters) {
      EXPECT_TRUE(one.equal(parameters[0])) << "parameters differ between ranks";
      EXPECT_LT((one - alone).abs().max().item<double>(), 1e-12)
          << ::testing::PrintToString(counts);
    }
  }
}

TEST(UnevenTest, ByTheMeanARankWithoutDataCountsAsZeroOrNotAtAll) {
  using Divisor = GradientReducer::Divisor;
  for (const auto& [divisor, expected] :
       {std::pair(Divisor::kAllRanks, 1.0), std::pair(Divisor::kActiveRanks, 3.0)}) {
    const auto gradients = on_ranks(3, [&](const ProcessGroupPtr& group) {
      torch::nn::Linear net(torch::nn::LinearOptions(1, 1).bias(false));
      DistributedDataParallel model(net, group);
      model.reducer().set_divisor(divisor);
      if (group->rank() != 1) {
        EXPECT_TRUE(model.pass_without_data());
      } else {
        model.forward(torch::full({1, 1}, 3.0)).sum().backward();
      }
      return net->weight.grad().item<double>();
    });
    EXPECT_THAT(gradients, ::testing::Each(expected));
  }
}

TEST(UnevenTest, BuffersComeFromARankThatHadData) {
  struct Normed : torch::nn::Module {
    Normed() { register_module("norm", norm); }
    Tensor forward(const Tensor& x) { return norm(x); }
    torch::nn::BatchNorm1d norm{1};
  };
  for (const auto sync : {BufferSync::kBroadcast, BufferSync::kAverage}) {
    const auto means = on_ranks(3, [&](const ProcessGroupPtr& group) {
      DistributedDataParallel model(std::make_shared<Normed>(), group, {.buffers = sync});
      if (group->rank() == 0) {
        model.pass_without_data();
      } else {
        model.forward(torch::tensor({{10.0f}, {10.0f}}) * group->rank()).sum().backward();
      }
      return model->norm->running_mean.item<double>();
    });
    EXPECT_THAT(
        means,
        ::testing::Each(::testing::DoubleNear(sync == BufferSync::kBroadcast ? 1.0 : 1.5, 1e-6)));
  }
}

TEST(UnevenTest, AWindowMayEndWithoutABackwardPass) {
  const auto gradients = on_ranks(2, [](const ProcessGroupPtr& group) {
    torch::nn::Linear net(torch::nn::LinearOptions(1, 1).bias(false));
    DistributedDataParallel model(net, group, {.average = Average::kBySamples});
    const auto pass = [&](std::int64_t rows, double value) {
      model.forward(torch::full({rows, 1}, value)).mean().backward();
    };
    for (int round = 0; round < 2; ++round) {
      net->zero_grad();
      if (group->rank() == 0) {
        pass(1, 3);
      } else {
        const auto no_sync = model.no_sync();
        pass(1, 6);
        pass(2, 9);
      }
      if (group->rank() == 1) model.reducer().average_window();
    }
    return net->weight.grad().item<double>();
  });
  EXPECT_THAT(gradients, ::testing::Each(::testing::DoubleNear(27.0 / 4, 1e-5)));
}

TEST(UnevenTest, ARequestToStopReachesAllRanksInTheSamePass) {
  const auto results = on_ranks(3, [](const ProcessGroupPtr& group) {
    torch::nn::Linear net(1, 1);
    DistributedDataParallel model(net, group);
    std::vector<bool> stops;
    for (int step = 0; step < 3; ++step) {
      if (step == 1 && group->rank() == 2) model.reducer().request_stop();
      model.forward(torch::ones({1, 1})).sum().backward();
      stops.push_back(model.reducer().stop_was_requested());
    }
    return stops;
  });
  EXPECT_THAT(results, ::testing::Each(::testing::ElementsAre(false, true, true)));
}

TEST(UnevenTest, WithoutDataOnAnyRankNothingChanges) {
  const auto results = on_ranks(2, [](const ProcessGroupPtr& group) {
    torch::nn::Linear net(2, 1);
    DistributedDataParallel model(net, group, {.average = Average::kBySamples});
    net->weight.mutable_grad() = torch::full({1, 2}, 7.0);
    const bool some_had_data = model.pass_without_data();
    return !some_had_data && net->weight.grad().equal(torch::full({1, 2}, 7.0)) &&
           !net->bias.grad().defined();
  });
  EXPECT_THAT(results, ::testing::Each(true));
}

TEST(UnevenTest, AWindowOfSeveralPassesIsOneStepOfTheOtherRanks) {
  const auto gradients = on_ranks(2, [](const ProcessGroupPtr& group) {
    torch::nn::Linear net(torch::nn::LinearOptions(1, 1).bias(false));
    DistributedDataParallel model(net, group, {.average = Average::kBySamples});
    std::vector<double> seen;
    int steps = 0;
    std::vector<double> batches(group->rank() == 0 ? 1 : 5, 2.0);
    std::size_t i = 0;
    const auto step = [&] {
      ++steps;
      seen.push_back(net->weight.grad().item<double>());
    };
    for (const double value : uneven(batches, model, step)) {
      ++i;
      const bool ends = i % 2 == 0 || i == batches.size();
      const auto no_sync = ends ? nullptr : std::make_unique<NoSync>(model.reducer());
      if (i % 2 == 1) net->zero_grad();
      model.forward(torch::full({1, 1}, value * static_cast<double>(i))).mean().backward();
      if (ends) step();
    }
    return std::pair(steps, seen);
  });
  // Rank 0: 2. Rank 1: 2, 4 | 6, 8 | 10.
  EXPECT_EQ(gradients[0], gradients[1]);
  EXPECT_EQ(gradients[0].first, 3);
  const auto near = [](double value) { return ::testing::DoubleNear(value, 1e-5); };
  EXPECT_THAT(gradients[0].second, ::testing::ElementsAre(near(8.0 / 3), near(7), near(10)));
}

}  // namespace
}  // namespace peal::train
