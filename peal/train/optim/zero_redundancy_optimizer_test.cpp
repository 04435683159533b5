#include "peal/train/optim/zero_redundancy_optimizer.h"

#include <functional>
#include <memory>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/train/ddp/distributed_data_parallel.h"
#include "peal/train/optim/fused_step.h"
#include "peal/train/testing/nets.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

/// An optimizer outside of LibTorch: a step of fixed size against the sign of the gradient.
struct SignOptions : torch::optim::OptimizerCloneableOptions<SignOptions> {
  explicit SignOptions(double size) : size_(size) {}
  double get_lr() const override { return size_; }
  void set_lr(double size) override { size_ = size; }
  double size_;
};

struct SignDescent final : torch::optim::Optimizer {
  SignDescent(const std::vector<torch::optim::OptimizerParamGroup>& groups,
              const SignOptions& defaults)
      : Optimizer(groups, std::make_unique<SignOptions>(defaults)) {}
  torch::Tensor step(LossClosure) override {
    const torch::NoGradGuard no_grad;
    for (auto& group : param_groups()) {
      for (torch::Tensor& parameter : group.params()) {
        if (!parameter.grad().defined()) continue;
        parameter.sub_(parameter.grad().sign(), group.options().get_lr());
      }
    }
    return {};
  }
};

}  // namespace

template <>
struct OptionsOf<SignDescent> {
  using Type = SignOptions;
};

namespace {

using ::testing::AllOf;
using testing::flat_parameters;
using ::testing::HasSubstr;
using testing::on_ranks;
using testing::SmallNet;
using testing::thrown_text;
using torch::Tensor;
using Groups = ShardedOptimizer::Groups;
using OptimizerPtr = std::unique_ptr<torch::optim::Optimizer>;
using ShardedPtr = std::unique_ptr<ShardedOptimizer>;
using NetPtr = std::shared_ptr<SmallNet>;

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

/// A net of the type; called by one thread at a time, or with ranks that do not share LibTorch's
/// generator, since values come from a generator of its own.
NetPtr make_net(torch::ScalarType type = torch::kFloat64) {
  auto net = std::make_shared<SmallNet>();
  const auto random = at::detail::createCPUGenerator(1);
  const torch::NoGradGuard no_grad;
  for (Tensor parameter : net->parameters()) parameter.uniform_(-0.3, 0.3, random);
  net->to(type);
  return net;
}

/// Gradients as all ranks have them after a backward pass of DistributedDataParallel.
void set_gradients(const SmallNet& net, int step) {
  const auto random = at::detail::createCPUGenerator(static_cast<std::uint64_t>(step + 10));
  std::size_t index = 0;
  for (Tensor parameter : net.parameters()) {
    const Tensor values = torch::randn(parameter.sizes(), random, torch::kFloat64);
    const bool has_gradient = (index++ + static_cast<std::size_t>(step)) % 5 != 0;
    parameter.mutable_grad() =
        has_gradient && parameter.requires_grad() ? values.to(parameter.scalar_type()) : Tensor();
  }
}

/// The weights and the biases.
Groups two_groups(const SmallNet& net) {
  std::vector<Tensor> weights, biases;
  for (const Tensor& parameter : net.parameters()) {
    (parameter.dim() > 1 ? weights : biases).push_back(parameter);
  }
  return {torch::optim::OptimizerParamGroup(weights), torch::optim::OptimizerParamGroup(biases)};
}

/// Halves the rate of all groups every ten steps, and treats the groups differently.
template <class Step>
void train(torch::optim::Optimizer& optimizer, const SmallNet& net, int from, int to, Step&& step) {
  for (int i = from; i < to; ++i) {
    if (i % 10 == 9) {
      for (auto& group : optimizer.param_groups()) {
        group.options().set_lr(group.options().get_lr() / 2);
      }
    }
    optimizer.zero_grad();
    set_gradients(net, i);
    step(optimizer);
  }
}

void plain_step(torch::optim::Optimizer& optimizer) { optimizer.step(); }

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

void expect_same_state(const OptimizerState& one, const OptimizerState& other) {
  EXPECT_EQ(one.algorithm, other.algorithm);
  ASSERT_EQ(one.groups.size(), other.groups.size());
  for (std::size_t i = 0; i < one.groups.size(); ++i) {
    EXPECT_EQ(one.groups[i].options, other.groups[i].options);
    EXPECT_EQ(one.groups[i].parameters, other.groups[i].parameters);
  }
  ASSERT_EQ(one.parameters.size(), other.parameters.size());
  for (const auto& [name, fields] : one.parameters) {
    ASSERT_EQ(fields.size(), other.parameters.at(name).size());
    for (const auto& [field, value] : fields) {
      EXPECT_TRUE(value.allclose(other.parameters.at(name).at(field), 1e-12, 1e-12))
          << name << " " << field;
    }
  }
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

using ZeroAdamW = ZeroRedundancyOptimizer<torch::optim::AdamW>;

std::int64_t state_bytes(const torch::optim::Optimizer& optimizer, const NamedParameters& named) {
  std::int64_t bytes = 0;
  for (const auto& [name, fields] : read_optimizer_state(optimizer, named).parameters) {
    for (const auto& [field, value] : fields) {
      if (value.dim() > 0) bytes += static_cast<std::int64_t>(value.nbytes());
    }
  }
  return bytes;
}

TEST(ZeroTest, ARankKeepsAtMostAQuarterOfTheStateAndThatOfTheLargestParameter) {
  const NetPtr plain_net = make_net();
  torch::optim::AdamW plain(plain_net->parameters());
  plain_net->forward(torch::randn({2, 1, 8, 8}, torch::kFloat64)).sum().backward();
  plain.step();
  const std::int64_t whole = state_bytes(plain, plain_net->named_parameters());
  std::int64_t largest = 0;
  for (const Tensor& parameter : plain_net->parameters()) {
    largest = std::max(largest, 2 * static_cast<std::int64_t>(parameter.nbytes()));
  }
  std::int64_t sum = 0;
  for (const std::int64_t bytes : on_ranks(4, [&](const ProcessGroupPtr& group) {
         const NetPtr net = make_net();
         ZeroAdamW optimizer(group, net, {});
         for (Tensor parameter : net->parameters()) parameter.mutable_grad() = parameter.detach();
         optimizer.step();
         EXPECT_TRUE(optimizer.state().empty());
         return state_bytes(optimizer.local(), net->named_parameters());
       })) {
    EXPECT_LE(bytes, whole / 4 + largest);
    EXPECT_GT(bytes, 0);
    sum += bytes;
  }
  EXPECT_EQ(sum, whole);
}

/// Layers of which some are registered, and some are too small.
torch::nn::Sequential make_large_net() {
  torch::nn::Sequential net(
      torch::nn::Linear(200, 150), torch::nn::Linear(150, 200), torch::nn::Linear(200, 100));
  const auto random = at::detail::createCPUGenerator(2);
  const torch::NoGradGuard no_grad;
  for (Tensor parameter : net->parameters()) parameter.uniform_(-0.3, 0.3, random);
  return net;
}

/// Trains, gives all parameters other memory in between as torch::load and to() do, and trains on.
template <class Step>
Tensor train_with_other_memory(torch::nn::Sequential& net, Step&& step) {
  for (int i = 0; i < 6; ++i) {
    const auto random = at::detail::createCPUGenerator(static_cast<std::uint64_t>(i));
    for (Tensor parameter : net->parameters()) {
      if (i == 3) parameter.set_data(parameter.detach().clone());
      parameter.mutable_grad() = torch::randn(parameter.sizes(), random);
    }
    step();
  }
  return flat_parameters(*net);
}

TEST(ZeroTest, LargeParametersReachAllRanksAlsoInOtherMemory) {
  auto plain_net = make_large_net();
  torch::optim::AdamW plain(plain_net->parameters(), {0.01});
  const Tensor expected = train_with_other_memory(plain_net, [&] { fused_step(plain); });
  for (const auto memory : {ParameterMemory::kRegistered, ParameterMemory::kPrivate}) {
    for (const int ranks : {2, 4}) {
      const auto nets = on_ranks(ranks, [&](const ProcessGroupPtr& group) {
        auto net = make_large_net();
        ZeroAdamW optimizer(group, net, {0.01}, {.memory = memory});
        EXPECT_TRUE(
            train_with_other_memory(net, [&] { optimizer.step(); }).allclose(expected, 1e-6, 1e-6));
        return net;
      });
      // The nets have outlived their optimizers.
      for (const auto& net : nets) {
        EXPECT_TRUE(flat_parameters(*net).allclose(expected, 1e-6, 1e-6));
      }
    }
  }
}

TEST(ZeroTest, ParametersThatAnotherGroupHasRegisteredAreCopied) {
  auto plain_net = make_large_net();
  torch::optim::AdamW plain(plain_net->parameters(), {0.01});
  const Tensor expected = train_with_other_memory(plain_net, [&] { fused_step(plain); });
  on_ranks(2, [&](const ProcessGroupPtr& group) {
    auto net = make_large_net();
    const ProcessGroupPtr other = group->split(0);
    const Tensor weight = net->parameters()[0];
    const Tensor memory = weight.detach();  // stays when the parameter gets other memory
    const Registration registration =
        other->register_memory(memory.data_ptr(), Bytes(std::int64_t(memory.nbytes())));
    ZeroAdamW optimizer(group, net, {0.01});
    EXPECT_TRUE(
        train_with_other_memory(net, [&] { optimizer.step(); }).allclose(expected, 1e-6, 1e-6));
    return 0;
  });
}

TEST(ZeroTest, ASchedulerOfLibTorchActsOnIt) {
  const auto rates = [](torch::optim::Optimizer& optimizer) {
    torch::optim::StepLR schedule(optimizer, /*step_size=*/2, /*gamma=*/0.1);
    std::vector<double> seen;
    for (int i = 0; i < 6; ++i) {
      optimizer.step();
      schedule.step();
      seen.push_back(optimizer.param_groups()[0].options().get_lr());
    }
    return seen;
  };
  const NetPtr plain_net = make_net();
  torch::optim::AdamW plain(plain_net->parameters(), {0.1});
  set_gradients(*plain_net, 1);
  const std::vector<double> plain_rates = rates(plain);
  on_ranks(2, [&](const ProcessGroupPtr& group) {
    const NetPtr net = make_net();
    ZeroAdamW optimizer(group, net, {0.1});
    set_gradients(*net, 1);
    EXPECT_EQ(rates(optimizer), plain_rates);
    EXPECT_TRUE(flat_parameters(*net).allclose(flat_parameters(*plain_net), 1e-12, 1e-12));
    return 0;
  });
}

TEST(ZeroTest, AGroupMayBeAddedLater) {
  const auto train_and_extend = [](torch::optim::Optimizer& optimizer, const SmallNet& net) {
    train(optimizer, net, 0, 5, plain_step);
    auto options = std::make_unique<torch::optim::AdamWOptions>(0.5);
    options->weight_decay(0.3);
    optimizer.add_param_group({net.out->parameters(), std::move(options)});
    train(optimizer, net, 5, 15, plain_step);
  };
  const auto first_group = [](const SmallNet& net) {
    std::vector<Tensor> parameters = net.conv->parameters();
    for (const Tensor& parameter : net.hidden->parameters()) parameters.push_back(parameter);
    return Groups{torch::optim::OptimizerParamGroup(parameters)};
  };
  const NetPtr plain_net = make_net();
  torch::optim::AdamW plain(first_group(*plain_net), {0.1});
  train_and_extend(plain, *plain_net);
  on_ranks(3, [&](const ProcessGroupPtr& group) {
    const NetPtr net = make_net();
    ZeroAdamW optimizer(group, net, first_group(*net), {0.1});
    train_and_extend(optimizer, *net);
    EXPECT_TRUE(flat_parameters(*net).allclose(flat_parameters(*plain_net), 1e-12, 1e-12));
    expect_same_state(optimizer.gather_state(),
                      read_optimizer_state(plain, plain_net->named_parameters()));
    return 0;
  });
}

TEST(ZeroTest, AStateIsLoadedIntoGroupsThatWereJustAdded) {
  const auto extend = [](torch::optim::Optimizer& optimizer, const SmallNet& net) {
    optimizer.add_param_group(
        {net.out->parameters(), std::make_unique<torch::optim::AdamWOptions>(0.5)});
  };
  const auto first_group = [](const SmallNet& net) {
    std::vector<Tensor> parameters = net.conv->parameters();
    for (const Tensor& parameter : net.hidden->parameters()) parameters.push_back(parameter);
    return Groups{torch::optim::OptimizerParamGroup(parameters)};
  };
  const NetPtr plain_net = make_net();
  torch::optim::AdamW plain(first_group(*plain_net), {0.1});
  extend(plain, *plain_net);
  train(plain, *plain_net, 0, 3, plain_step);
  const OptimizerState saved = read_optimizer_state(plain, plain_net->named_parameters());
  on_ranks(3, [&](const ProcessGroupPtr& group) {
    const NetPtr net = make_net();
    ZeroAdamW optimizer(group, net, first_group(*net), {0.1});
    extend(optimizer, *net);
    optimizer.load_state(saved);
    expect_same_state(optimizer.gather_state(), saved);
    return 0;
  });
}

TEST(ZeroTest, OneRankMayGatherTheStateAlone) {
  const NetPtr plain_net = make_net();
  torch::optim::AdamW plain(plain_net->parameters(), {0.1});
  train(plain, *plain_net, 0, 3, plain_step);
  on_ranks(3, [&](const ProcessGroupPtr& group) {
    const NetPtr net = make_net();
    ZeroAdamW optimizer(group, net, {0.1});
    train(optimizer, *net, 0, 3, plain_step);
    const OptimizerState state = optimizer.gather_state(Rank{1});
    if (group->rank() == 1) {
      expect_same_state(state, read_optimizer_state(plain, plain_net->named_parameters()));
    } else {
      EXPECT_TRUE(state.groups.empty());
      EXPECT_TRUE(state.parameters.empty());
    }
    return 0;
  });
}

TEST(ZeroTest, AGatheredStateDoesNotChangeWithLaterSteps) {
  on_ranks(2, [](const ProcessGroupPtr& group) {
    const NetPtr net = make_net();
    ZeroAdamW optimizer(group, net, {0.1});
    train(optimizer, *net, 0, 3, plain_step);
    const OptimizerState state = optimizer.gather_state();
    std::map<std::string, Tensor> before;
    for (const auto& [name, fields] : state.parameters) before[name] = fields.at("exp_avg").clone();
    train(optimizer, *net, 3, 6, plain_step);
    for (const auto& [name, values] : before) {
      EXPECT_TRUE(state.parameters.at(name).at("exp_avg").equal(values)) << name;
    }
    return 0;
  });
}

TEST(ZeroTest, MixedTypesFrozenAndTiedParametersAreStepped) {
  const auto make_mixed = [] {
    NetPtr net = make_net(torch::kFloat32);
    net->conv->to(torch::kFloat64);
    net->hidden->to(torch::kBFloat16);
    net->conv->bias.set_requires_grad(false);
    net->register_module("again", net->out);
    return net;
  };
  const auto distinct_of = [](const SmallNet& net) {
    std::vector<Tensor> parameters = net.conv->parameters();
    for (const auto& layer : {net.hidden, net.out}) {
      for (const Tensor& parameter : layer->parameters()) parameters.push_back(parameter);
    }
    return parameters;
  };
  const NetPtr plain_net = make_mixed();
  torch::optim::AdamW plain(distinct_of(*plain_net), {0.01});
  train(plain, *plain_net, 0, 20, [](auto& optimizer) { fused_step(optimizer); });
  on_ranks(3, [&](const ProcessGroupPtr& group) {
    const NetPtr net = make_mixed();
    ZeroAdamW optimizer(group, net, {0.01});
    train(optimizer, *net, 0, 20, plain_step);
    EXPECT_TRUE(flat_parameters(*net).equal(flat_parameters(*plain_net)));
    return 0;
  });
}

TEST(ZeroTest, AClosureComputesTheLossOnceWithGradients) {
  on_ranks(2, [](const ProcessGroupPtr& group) {
    const NetPtr net = make_net();
    ZeroAdamW optimizer(group, net, {0.1});
    const Tensor before = flat_parameters(*net);
    int calls = 0;
    const torch::NoGradGuard no_grad;
    const Tensor loss = optimizer.step([&] {
      ++calls;
      optimizer.zero_grad();
      const Tensor value = net->forward(torch::ones({2, 1, 8, 8}, torch::kFloat64)).square().sum();
      value.backward();
      return value;
    });
    EXPECT_EQ(calls, 1);
    EXPECT_GT(loss.item<double>(), 0);
    EXPECT_FALSE(flat_parameters(*net).equal(before));
    return 0;
  });
}

TEST(ZeroTest, EveryParameterHasAnOwnerAndAllRanksAgree) {
  const auto owners = on_ranks(3, [](const ProcessGroupPtr& group) {
    const NetPtr net = make_net();
    const ZeroAdamW optimizer(group, net, {});
    std::vector<Rank> of;
    for (const auto& item : net->named_parameters()) of.push_back(optimizer.owner(item.key()));
    EXPECT_THAT(thrown_text([&] { (void)optimizer.owner("none"); }), HasSubstr("usage: "));
    return of;
  });
  EXPECT_EQ(owners[0], owners[1]);
  EXPECT_EQ(owners[0], owners[2]);
}

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

TEST(ZeroTest, AnOptimizerOutsideOfLibTorchIsDividedToo) {
  const NetPtr alone = make_net();
  SignDescent plain(two_groups(*alone), SignOptions(0.125));
  train(plain, *alone, 0, 20, plain_step);
  on_ranks(3, [&](const ProcessGroupPtr& group) {
    const NetPtr net = make_net();
    ZeroRedundancyOptimizer<SignDescent> optimizer(
        group, net, two_groups(*net), SignOptions(0.125));
    train(optimizer, *net, 0, 20, plain_step);
    EXPECT_TRUE(flat_parameters(*net).equal(flat_parameters(*alone)));
    EXPECT_THAT(thrown_text([&] { (void)optimizer.gather_state(); }), HasSubstr("unsupported: "));
    return 0;
  });
}

// ---- errors

TEST(ZeroTest, LbfgsIsRefusedWithTheReason) {
  on_ranks(2, [](const ProcessGroupPtr& group) {
    const NetPtr net = make_net();
    EXPECT_THAT(thrown_text([&] {
                  ZeroRedundancyOptimizer<torch::optim::LBFGS> optimizer(
                      group, net, torch::optim::LBFGSOptions(1));
                }),
                AllOf(HasSubstr("unsupported: "), HasSubstr("depend on all parameters together")));
    return 0;
  });
}

TEST(ZeroTest, DifferentParametersAreAMismatchThatNamesTheFirst) {
  const auto texts = on_ranks(2, [](const ProcessGroupPtr& group) {
    const torch::nn::Linear layer(3, group->rank() + 1);
    return thrown_text([&] { ZeroAdamW optimizer(group, layer, {}); });
  });
  EXPECT_THAT(
      texts[0],
      AllOf(HasSubstr("mismatch: "), HasSubstr("weight (Float, shape [2, 3], group 0) on rank 1")));
  EXPECT_EQ(texts[0], texts[1]);
}

TEST(ZeroTest, DifferentOptionsAreAMismatch) {
  const auto texts = on_ranks(2, [](const ProcessGroupPtr& group) {
    const NetPtr net = make_net();
    return thrown_text([&] { ZeroAdamW optimizer(group, net, {0.1 * (group->rank() + 1)}); });
  });
  EXPECT_THAT(texts[0], AllOf(HasSubstr("mismatch: "), HasSubstr("lr 0.1"), HasSubstr("lr 0.2")));
}

TEST(ZeroTest, AParameterOutsideOfTheModuleOrGivenTwiceIsAUsageError) {
  on_ranks(1, [](const ProcessGroupPtr& group) {
    const NetPtr net = make_net();
    const Tensor other = torch::ones({2}).set_requires_grad(true);
    EXPECT_THAT(thrown_text([&] {
                  ZeroAdamW optimizer(group, net, Groups{{std::vector<Tensor>{other}}}, {});
                }),
                HasSubstr("is not among the named parameters"));
    std::vector<Tensor> twice = net->parameters();
    twice.push_back(twice[0]);
    EXPECT_THAT(thrown_text([&] { ZeroAdamW optimizer(group, net, Groups{{twice}}, {}); }),
                HasSubstr("conv.weight is twice"));
    return 0;
  });
}

TEST(ZeroTest, AStateOfOtherParametersChangesNothingOnAnyRank) {
  const torch::nn::Linear other(3, 2);
  torch::optim::AdamW plain(other->parameters());
  const OptimizerState state = read_optimizer_state(plain, other->named_parameters());
  on_ranks(2, [&](const ProcessGroupPtr& group) {
    const NetPtr net = make_net();
    ZeroAdamW optimizer(group, net, {0.25});
    train(optimizer, *net, 0, 2, plain_step);
    const OptimizerState before = optimizer.gather_state();
    EXPECT_THAT(thrown_text([&] { optimizer.load_state(state); }),
                AllOf(HasSubstr("usage: "), HasSubstr("conv.weight is missing from the state")));
    OptimizerState wrong = before;
    wrong.parameters.at("out.bias").at("exp_avg") = torch::zeros({1, 2});
    EXPECT_THAT(thrown_text([&] { optimizer.load_state(wrong); }),
                HasSubstr("out.bias: exp_avg is"));
    expect_same_state(optimizer.gather_state(), before);
    return 0;
  });
}

TEST(ZeroTest, ArchivesOfLibTorchAreUnsupported) {
  on_ranks(1, [](const ProcessGroupPtr& group) {
    const NetPtr net = make_net();
    ZeroAdamW optimizer(group, net, {});
    std::stringstream file;
    EXPECT_THAT(thrown_text([&] { torch::save(optimizer, file); }), HasSubstr("use gather_state"));
    return 0;
  });
}

}  // namespace
}  // namespace peal::train
