#include "peal/train/ddp/gradient_hook.h"

#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/torch.h>

#include "peal/train/ddp/distributed_data_parallel.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using ::testing::Each;
using testing::on_ranks;
using torch::Tensor;

/// Leaves gradients to autograd.
GradientCalls calling(std::function<void()> arrived) {
  return {.computed = [](const Tensor& gradient) { return gradient; },
          .accumulated = std::move(arrived)};
}

Tensor input_of(Rank rank) { return torch::full({1, 3}, rank + 1.0); }

TEST(GradientHookTest, EachHookOfAParameterIsCalledOncePerPassUntilItEnds) {
  torch::nn::Linear net(2, 1);
  const auto pass = [&] { (net(torch::ones({1, 2})) + net(torch::ones({1, 2}))).sum().backward(); };
  int first_calls = 0, second_calls = 0;
  const GradientHook first(net->weight, calling([&] { ++first_calls; }));
  {
    const GradientHook second(net->weight, calling([&] { ++second_calls; }));
    pass();
    net->to(torch::kDouble);
    net->to(torch::kFloat);
    pass();
  }
  pass();
  EXPECT_EQ(first_calls, 3);
  EXPECT_EQ(second_calls, 2);
}

TEST(GradientHookTest, TheGradientHasItsNewValueInTheCall) {
  torch::nn::Linear net(2, 1);
  std::vector<double> seen;
  const GradientHook hook(
      net->weight, calling([&] { seen.push_back(net->weight.grad().sum().item<double>()); }));
  for (int pass = 0; pass < 2; ++pass) net(torch::ones({1, 2})).sum().backward();
  EXPECT_EQ(seen, (std::vector<double>{2, 4}));
}

/// As a hook that a Python program registers: all in one object, which LibTorch adds after it has
/// removed every other hook.
class DoublingHook final : public torch::autograd::FunctionPreHook {
 public:
  static void add_to(const Tensor& tensor) {
    torch::autograd::impl::clear_hooks(tensor);
    torch::autograd::impl::add_hook(tensor, std::make_unique<DoublingHook>());
  }
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& in) override {
    return {in.front() * 2};
  }
};

TEST(GradientHookTest, AnEarlierHookOfPythonRemains) {
  torch::nn::Linear net(2, 1);
  DoublingHook::add_to(net->weight);
  int calls = 0;
  {
    const GradientHook hook(net->weight, calling([&] { ++calls; }));
    net(torch::ones({1, 2})).sum().backward();
  }
  EXPECT_TRUE(net->weight.grad().equal(torch::full({1, 2}, 2.0)));
  net(torch::ones({1, 2})).sum().backward();
  EXPECT_TRUE(net->weight.grad().equal(torch::full({1, 2}, 4.0)));
  EXPECT_EQ(calls, 1);
}

TEST(GradientHookTest, ALaterHookOfPythonReplacesItOnlyUntilItIsRenewed) {
  torch::nn::Linear net(2, 1);
  int calls = 0;
  GradientHook hook(net->weight, calling([&] { ++calls; }));
  DoublingHook::add_to(net->weight);
  net(torch::ones({1, 2})).sum().backward();
  EXPECT_EQ(calls, 1) << "the accumulator is the same";
  hook.renew();
  net->to(torch::kDouble);
  net(torch::ones({1, 2}, torch::kDouble)).sum().backward();
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(net->weight.grad().equal(torch::full({1, 2}, 4.0, torch::kDouble)));
}

TEST(GradientHookTest, ALaterHookOfTheUserDoesNotReplaceTheHook) {
  torch::nn::Linear net(2, 1);
  int calls = 0;
  const GradientHook hook(net->weight, calling([&] { ++calls; }));
  net->weight.register_hook([](const Tensor& gradient) { return gradient * 2; });
  net(torch::ones({1, 2})).sum().backward();
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(net->weight.grad().equal(torch::full({1, 2}, 2.0)));
}

TEST(GradientHookTest, TheWrapperLeavesNoHooksInTheModule) {
  const auto results = on_ranks(2, [](const ProcessGroupPtr& group) {
    torch::nn::Linear net(3, 1);
    const auto uses = net->weight.use_count();
    std::vector<bool> right;
    for (int round = 0; round < 2; ++round) {
      {
        DistributedDataParallel model(net, group);
        model.forward(input_of(group->rank())).sum().backward();
        net->to(torch::kDouble);
        net->to(torch::kFloat);
        model.forward(input_of(group->rank())).sum().backward();
      }
      right.push_back(net->weight.use_count() == uses);
      net->zero_grad();
      net(input_of(group->rank())).sum().backward();
      right.push_back(net->weight.grad().equal(input_of(group->rank())));
    }
    return right;
  });
  EXPECT_THAT(results, Each(Each(true)));
}

TEST(GradientHookTest, AGraphThatOutlivesTheWrapperRunsWithoutCommunication) {
  const auto results = on_ranks(2, [](const ProcessGroupPtr& group) {
    torch::nn::Linear net(3, 1);
    Tensor loss;
    {
      DistributedDataParallel model(net, group);
      model.forward(input_of(group->rank())).sum().backward();
      loss = model.forward(input_of(group->rank())).sum();
    }
    net->zero_grad();
    loss.backward();
    return net->weight.grad().equal(input_of(group->rank()));
  });
  EXPECT_THAT(results, Each(true));
}

TEST(GradientHookTest, AutogradGradSendsNothing) {
  const auto results = on_ranks(2, [](const ProcessGroupPtr& group) {
    torch::nn::Linear net(3, 1);
    DistributedDataParallel model(net, group);
    if (group->rank() == 0) {
      torch::autograd::grad({model.forward(input_of(0)).sum()}, {net->weight, net->bias});
    }
    model.forward(input_of(group->rank())).sum().backward();
    return net->weight.grad().equal(torch::full({1, 3}, 1.5));
  });
  EXPECT_THAT(results, Each(true));
}

}  // namespace
}  // namespace peal::train
