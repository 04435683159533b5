// The parameters of a ZeroRedundancyOptimizer: their memory, types, owners and errors.
#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/train/optim/fused_step.h"
#include "peal/train/optim/testing/zero.h"
#include "peal/train/testing/nets.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using ::testing::AllOf;
using testing::flat_parameters;
using testing::Groups;
using ::testing::HasSubstr;
using testing::make_net;
using testing::NetPtr;
using testing::on_ranks;
using testing::plain_step;
using testing::SmallNet;
using testing::thrown_text;
using testing::train;
using testing::ZeroAdamW;
using torch::Tensor;

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

TEST(ZeroTest, AParameterOutsideOfTheModuleOrGivenTwiceIsAUsageError) {
  on_ranks(1, [](const ProcessGroupPtr& group) {
    const NetPtr net = make_net();
    const Tensor other = torch::ones({2}).set_requires_grad(true);
    EXPECT_THAT(thrown_text([&] {
                  ZeroAdamW optimizer(group, net, Groups{{std::vector<Tensor>{other}}}, {});
                }),
                HasSubstr("not among the named parameters"));
    std::vector<Tensor> twice = net->parameters();
    twice.push_back(twice[0]);
    EXPECT_THAT(thrown_text([&] { ZeroAdamW optimizer(group, net, Groups{{twice}}, {}); }),
                HasSubstr("conv.weight is twice"));
    return 0;
  });
}

}  // namespace
}  // namespace peal::train
