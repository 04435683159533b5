// Training with a divided state equals training with the optimizer alone.
#include "peal/train/optim/zero_redundancy_optimizer.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/train/ddp/distributed_data_parallel.h"
#include "peal/train/optim/testing/zero.h"
#include "peal/train/testing/nets.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using testing::expect_same_state;
using testing::flat_parameters;
using testing::Groups;
using testing::make_net;
using testing::NetPtr;
using testing::on_ranks;
using testing::plain_step;
using testing::SmallNet;
using testing::train;
using testing::two_groups;
using testing::ZeroAdamW;
using torch::Tensor;
using OptimizerPtr = std::unique_ptr<torch::optim::Optimizer>;
using ShardedPtr = std::unique_ptr<ShardedOptimizer>;

constexpr int kSteps = 50;

/// An optimizer, with and without ranks.
struct ZeroCase {
  std::string name;
  std::function<OptimizerPtr(const Groups&)> plain;
  std::function<ShardedPtr(ProcessGroupPtr, NetPtr, const Groups&, UpdateKernels)> sharded;
  friend std::ostream& operator<<(std::ostream& out, const ZeroCase& of) { return out << of.name; }
};

template <class Optimizer, class Options>
ZeroCase zero_case(std::string name, Options options) {
  return {std::move(name),
          [options](const Groups& groups) -> OptimizerPtr {
            return std::make_unique<Optimizer>(groups, options);
          },
          [options](ProcessGroupPtr group, NetPtr net, const Groups& groups, UpdateKernels kernels)
              -> ShardedPtr {
            return std::make_unique<ZeroRedundancyOptimizer<Optimizer>>(
                std::move(group), std::move(net), groups, options, ZeroOptions{.kernels = kernels});
          }};
}

std::vector<ZeroCase> zero_cases() {
  namespace optim = torch::optim;
  return {
      zero_case<optim::SGD>("SgdMomentum", optim::SGDOptions(0.1).momentum(0.9)),
      zero_case<optim::Adam>("Adam", optim::AdamOptions(0.02).amsgrad(true)),
      zero_case<optim::AdamW>("AdamW", optim::AdamWOptions(0.02).weight_decay(0.1)),
      zero_case<optim::Adagrad>("Adagrad", optim::AdagradOptions(0.1)),
      zero_case<optim::RMSprop>("RmsProp", optim::RMSpropOptions(0.01).momentum(0.5)),
  };
}

Tensor train_alone(const ZeroCase& of, torch::ScalarType type = torch::kFloat64) {
  const NetPtr net = make_net(type);
  const OptimizerPtr optimizer = of.plain(two_groups(*net));
  optimizer->param_groups()[1].options().set_lr(0.03);
  train(*optimizer, *net, 0, kSteps, plain_step);
  return flat_parameters(*net);
}

class Zero : public ::testing::TestWithParam<ZeroCase> {
 protected:
  static std::vector<Tensor> train_on(int ranks, torch::ScalarType type, UpdateKernels kernels) {
    return on_ranks(ranks, [&](const ProcessGroupPtr& group) {
      const NetPtr net = make_net(type);
      const ShardedPtr optimizer = GetParam().sharded(group, net, two_groups(*net), kernels);
      optimizer->param_groups()[1].options().set_lr(0.03);
      train(*optimizer, *net, 0, kSteps, plain_step);
      return flat_parameters(*net);
    });
  }
};

TEST_P(Zero, WithFusedKernelsEveryRankHasTheParametersOfTheOptimizerWithoutRanks) {
  const Tensor alone = train_alone(GetParam());
  for (const int ranks : {1, 2, 3, 4}) {
    for (const Tensor& parameters : train_on(ranks, torch::kFloat64, UpdateKernels::kFused)) {
      EXPECT_TRUE(parameters.allclose(alone, 1e-12, 1e-12)) << ranks;
    }
  }
}

TEST_P(Zero, WithPlainKernelsTheParametersHaveTheSameBits) {
  for (const auto type : {torch::kFloat64, torch::kFloat32, torch::kBFloat16}) {
    const Tensor alone = train_alone(GetParam(), type);
    for (const Tensor& parameters : train_on(3, type, UpdateKernels::kPlain)) {
      EXPECT_TRUE(parameters.equal(alone)) << type;
    }
  }
}

TEST_P(Zero, MoreRanksThanParametersIsPossible) {
  const Tensor alone = train_alone(GetParam());
  for (const Tensor& parameters : train_on(8, torch::kFloat64, UpdateKernels::kFused)) {
    EXPECT_TRUE(parameters.allclose(alone, 1e-12, 1e-12));
  }
}

/// Trains `from` to `to` steps on `ranks` ranks, or without ranks for 0, and starts with `state`
/// and `parameters`.
struct Stage {
  OptimizerState state;
  std::vector<Tensor> parameters;
};

Stage stage_of(const SmallNet& net, OptimizerState state) {
  std::vector<Tensor> parameters;
  for (const Tensor& parameter : net.parameters()) parameters.push_back(parameter.detach().clone());
  return {std::move(state), std::move(parameters)};
}

void start_from(const std::optional<Stage>& stage, const SmallNet& net) {
  if (!stage) return;
  const torch::NoGradGuard no_grad;
  const std::vector<Tensor> parameters = net.parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    Tensor(parameters[i]).copy_(stage->parameters[i]);
  }
}

Stage train_stage(const ZeroCase& of, int ranks, const std::optional<Stage>& before, int from) {
  constexpr int kStage = 8;
  if (ranks == 0) {
    const NetPtr net = make_net();
    const OptimizerPtr optimizer = of.plain(two_groups(*net));
    start_from(before, *net);
    const auto named = net->named_parameters();
    if (before) load_optimizer_state(*optimizer, named, before->state);
    train(*optimizer, *net, from, from + kStage, plain_step);
    return stage_of(*net, read_optimizer_state(*optimizer, named));
  }
  const auto stages = on_ranks(ranks, [&](const ProcessGroupPtr& group) {
    const NetPtr net = make_net();
    const ShardedPtr optimizer = of.sharded(group, net, two_groups(*net), UpdateKernels::kFused);
    start_from(before, *net);
    if (before) optimizer->load_state(before->state);
    train(*optimizer, *net, from, from + kStage, plain_step);
    return stage_of(*net, optimizer->gather_state());
  });
  return stages.back();
}

TEST_P(Zero, TheStateMovesBetweenNumbersOfRanksAndTheOptimizerWithoutRanks) {
  std::optional<Stage> moving, alone;
  int from = 0;
  for (const int ranks : {3, 1, 4, 0, 2, 0}) {
    moving = train_stage(GetParam(), ranks, moving, from);
    alone = train_stage(GetParam(), 0, alone, from);
    from += 8;
    expect_same_state(moving->state, alone->state);
    for (std::size_t i = 0; i < alone->parameters.size(); ++i) {
      EXPECT_TRUE(moving->parameters[i].allclose(alone->parameters[i], 1e-12, 1e-12)) << ranks;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, Zero, ::testing::ValuesIn(zero_cases()), [](const auto& of) {
  return of.param.name;
});

TEST(ZeroTest, WithDistributedDataParallelTrainingIsThatOfOneProcessOnTheWholeBatch) {
  const auto train_on_part =
      [](auto& model, torch::optim::Optimizer& optimizer, int part, int parts) {
        for (int step = 0; step < 20; ++step) {
          const auto random = at::detail::createCPUGenerator(static_cast<std::uint64_t>(step));
          const Tensor x = torch::randn({12, 1, 8, 8}, random, torch::kFloat64);
          const Tensor labels = torch::randint(4, {12}, random, torch::kInt64);
          optimizer.zero_grad();
          torch::nll_loss(model.forward(x.chunk(parts)[static_cast<std::size_t>(part)]),
                          labels.chunk(parts)[static_cast<std::size_t>(part)])
              .backward();
          optimizer.step();
        }
      };
  const NetPtr alone = make_net();
  torch::optim::AdamW plain(alone->parameters(), {0.01});
  train_on_part(*alone, plain, 0, 1);
  on_ranks(4, [&](const ProcessGroupPtr& group) {
    const NetPtr net = make_net();
    DistributedDataParallel model(net, group);
    ZeroAdamW optimizer(group, net, {0.01});
    train_on_part(model, optimizer, group->rank(), group->size());
    EXPECT_TRUE(flat_parameters(*net).allclose(flat_parameters(*alone), 1e-9, 1e-9));
    return 0;
  });
}

}  // namespace
}  // namespace peal::train
