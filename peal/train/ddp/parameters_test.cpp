#include "peal/train/ddp/parameters.h"

#include <memory>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/group/testing/idle_backend.h"
#include "peal/train/tensors/typed_lists.h"
#include "peal/train/testing/nets.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using testing::on_ranks;

TEST(ParametersTest, BroadcastGivesEveryRankTheParametersOfTheRoot) {
  const auto nets = testing::replicas<testing::SmallNet>(1, 5);
  const auto flat = on_ranks(3, [&](const ProcessGroupPtr& group) {
    testing::SmallNet net;
    if (group->rank() == 2) net = *nets[0];
    broadcast_parameters(*group, net, 2);
    return testing::flat_parameters(net);
  });
  for (const torch::Tensor& parameters : flat) {
    EXPECT_TRUE(parameters.equal(testing::flat_parameters(*nets[0])));
  }
}

TEST(ParametersTest, GradientsAreAveragedAndParametersWithoutAGradientDoNotChange) {
  const auto right = on_ranks(2, [](const ProcessGroupPtr& group) {
    testing::TwoPaths net;
    net.forward(torch::full({1, 3}, 2.0 * group->rank()), testing::TwoPaths::Path::kFirst)
        .sum()
        .backward();
    average_gradients(*group, net);
    return net.first->weight.grad().equal(torch::ones({3, 3})) &&
           net.first->bias.grad().equal(torch::ones({3})) && !net.second->weight.grad().defined();
  });
  EXPECT_THAT(right, Each(true));
}

TEST(ParametersTest, AMissingGradientOnOneRankCountsAsZero) {
  const auto results = on_ranks(2, [](const ProcessGroupPtr& group) {
    testing::TwoPaths net;  // two layers of one shape
    const torch::nn::Linear unused(3, 3);
    net.register_module("unused", unused);
    auto& layer = group->rank() == 0 ? net.first : net.second;
    layer(torch::full({1, 3}, 2.0 + 2 * group->rank())).sum().backward();
    average_gradients(*group, net);
    return net.first->weight.grad().equal(torch::full({3, 3}, 1.0)) &&
           net.first->bias.grad().equal(torch::full({3}, 0.5)) &&
           net.second->weight.grad().equal(torch::full({3, 3}, 2.0)) &&
           net.second->bias.grad().equal(torch::full({3}, 0.5)) && !unused->weight.grad().defined();
  });
  EXPECT_THAT(results, Each(true));
}

TEST(ParametersTest, ARankWithoutAnyGradientTakesPart) {
  const auto results = on_ranks(3, [](const ProcessGroupPtr& group) {
    torch::nn::Linear net(3, 1);
    if (group->rank() == 1) net(torch::full({1, 3}, 6.0)).sum().backward();
    average_gradients(*group, *net);
    return net->weight.grad().equal(torch::full({1, 3}, 2.0));
  });
  EXPECT_THAT(results, Each(true));
}

TEST(ParametersTest, ModulesOfOtherShapesAreAMismatchThatNamesTheParameter) {
  const auto errors = on_ranks(2, [](const ProcessGroupPtr& group) {
    const bool wide = group->rank() == 1;  // the same number of elements, in other shapes
    torch::nn::Linear net(torch::nn::LinearOptions(wide ? 3 : 2, wide ? 2 : 3).bias(false));
    net(torch::ones({1, wide ? 3 : 2})).sum().backward();
    return testing::thrown_text([&] { average_gradients(*group, *net); });
  });
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("mismatch"), HasSubstr("weight"), HasSubstr("[2, 3]"))));
}

TEST(ParametersTest, GradientsOfOtherTypesAreAMismatchThatNamesTheParameter) {
  const auto errors = on_ranks(2, [](const ProcessGroupPtr& group) {
    torch::nn::Linear net(3, 1);
    if (group->rank() == 1) net->to(torch::kDouble);
    net(torch::ones({1, 3}, net->weight.scalar_type())).sum().backward();
    return testing::thrown_text([&] { average_gradients(*group, *net); });
  });
  EXPECT_THAT(
      errors,
      Each(AllOf(
          HasSubstr("mismatch"), HasSubstr("weight"), HasSubstr("Float"), HasSubstr("Double"))));
}

TEST(ParametersTest, AveragingCostsAnAllReduceOf32BytesAndAnAllReduceForEachType) {
  torch::nn::Linear net(3, 1);
  net(torch::ones({1, 3})).sum().backward();
  auto backend = std::make_unique<peal::testing::IdleBackend>(2);
  const auto& asked = backend->asked();
  ProcessGroup group(std::move(backend), {});
  average_gradients(group, *net);
  using peal::testing::Asked;
  EXPECT_THAT(asked,
              ::testing::ElementsAre(Asked{Operation::kAllReduce, 32_B},
                                     Asked{Operation::kAllReduce, 16_B}));
}

TEST(TypedListsTest, EachTensorIsInOneListAndEachListHasOneType) {
  const torch::Tensor a = torch::ones({1}), b = torch::ones({2}, torch::kInt64),
                      c = torch::ones({3});
  EXPECT_EQ(distinct({a, b, torch::Tensor(), a, c}).size(), 3u);
  const auto lists = by_type({a, b, c});
  ASSERT_EQ(lists.size(), 2u);
  for (const auto& list : lists) {
    for (const torch::Tensor& tensor : list) {
      EXPECT_EQ(tensor.scalar_type(), list.front().scalar_type());
    }
  }
  EXPECT_EQ(lists[0].size() + lists[1].size(), 3u);
}

}  // namespace
}  // namespace peal::train
