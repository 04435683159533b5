// The state of a ZeroRedundancyOptimizer: its size on each rank, gathered, and loaded.
#include <algorithm>
#include <cstdint>
#include <map>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/train/optim/testing/zero.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using ::testing::AllOf;
using testing::expect_same_state;
using ::testing::HasSubstr;
using testing::make_net;
using testing::NetPtr;
using testing::on_ranks;
using testing::plain_step;
using testing::thrown_text;
using testing::train;
using testing::ZeroAdamW;
using torch::Tensor;

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
    wrong.parameters.at("out.bias").erase("exp_avg");  // only one rank owns out.bias
    EXPECT_THAT(thrown_text([&] { optimizer.load_state(wrong); }),
                HasSubstr("out.bias: exp_avg is missing from the state"));
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
