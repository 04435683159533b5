#include "peal/train/parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/train/testing/nets.h"
#include "peal/train/testing/ranks.h"
#include "peal/train/typed_lists.h"

namespace peal::train {
namespace {

using ::testing::Each;
using testing::on_ranks;

TEST(ParametersTest, BroadcastGivesEveryoneTheRootsParameters) {
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

TEST(ParametersTest, GradientsAreAveragedAndParametersWithoutOneAreLeftAlone) {
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

TEST(TypedListsTest, EachTensorComesOnceAndTypesAreKeptApart) {
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
