// A ZeroRedundancyOptimizer behaves as an optimizer of LibTorch: schedulers, groups, closures; and
// which optimizers it divides.
#include <memory>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/train/optim/testing/zero.h"
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
using testing::expect_same_state;
using testing::flat_parameters;
using testing::Groups;
using ::testing::HasSubstr;
using testing::make_net;
using testing::NetPtr;
using testing::on_ranks;
using testing::plain_step;
using testing::set_gradients;
using testing::SmallNet;
using testing::thrown_text;
using testing::train;
using testing::two_groups;
using testing::ZeroAdamW;
using torch::Tensor;

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

/// All layers but the last, which a test adds later.
Groups first_group(const SmallNet& net) {
  std::vector<Tensor> parameters = net.conv->parameters();
  for (const Tensor& parameter : net.hidden->parameters()) parameters.push_back(parameter);
  return {torch::optim::OptimizerParamGroup(parameters)};
}

TEST(ZeroTest, AGroupMayBeAddedLater) {
  const auto train_and_extend = [](torch::optim::Optimizer& optimizer, const SmallNet& net) {
    train(optimizer, net, 0, 5, plain_step);
    auto options = std::make_unique<torch::optim::AdamWOptions>(0.5);
    options->weight_decay(0.3);
    optimizer.add_param_group({net.out->parameters(), std::move(options)});
    train(optimizer, net, 5, 15, plain_step);
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

TEST(ZeroTest, DifferentOptionsAreAMismatch) {
  const auto texts = on_ranks(2, [](const ProcessGroupPtr& group) {
    const NetPtr net = make_net();
    return thrown_text([&] { ZeroAdamW optimizer(group, net, {0.1 * (group->rank() + 1)}); });
  });
  EXPECT_THAT(texts[0], AllOf(HasSubstr("mismatch: "), HasSubstr("lr 0.1"), HasSubstr("lr 0.2")));
}

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

}  // namespace
}  // namespace peal::train
