#include "peal/train/replicas/scatter_gather.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::thrown_text;

Split split_over(int devices, std::int64_t samples, std::int64_t dim = 0) {
  return split_evenly(
      samples, dim, std::vector<torch::Device>(static_cast<std::size_t>(devices), torch::kCPU));
}

TEST(ScatterGatherTest, PartsDifferByOneSampleAtMost) {
  EXPECT_THAT(split_over(3, 8).sizes, ElementsAre(3, 3, 2));
  EXPECT_THAT(split_over(4, 5).sizes, ElementsAre(2, 1, 1, 1));
  EXPECT_THAT(split_over(2, 2).sizes, ElementsAre(1, 1));
}

TEST(ScatterGatherTest, AReplicaWithoutSamplesGetsNoPart) {
  EXPECT_THAT(split_over(4, 2).sizes, ElementsAre(1, 1));
  EXPECT_THAT(split_over(4, 0).sizes, ElementsAre(0));
}

TEST(ScatterGatherTest, JoinedPartsAreTheTensor) {
  const auto x = torch::arange(24).view({2, 6, 2});
  for (const std::int64_t dim : {0, 1, -1}) {
    for (const int devices : {1, 2, 4}) {
      const auto parts = scatter(x, split_over(devices, x.size(dim), dim));
      EXPECT_TRUE(gather(parts, dim, torch::kCPU).equal(x));
    }
  }
}

TEST(ScatterGatherTest, ListsAndOptionalTensorsAreSplitAndOtherValuesAreCopied) {
  const auto x = torch::arange(3);
  const Split split = split_over(2, 3);
  const auto lists = scatter(std::vector<torch::Tensor>{x, x + 10}, split);
  EXPECT_TRUE(lists[0][1].equal(torch::tensor({10, 11})));
  EXPECT_TRUE(lists[1][0].equal(torch::tensor({2})));
  EXPECT_TRUE(scatter(std::optional(x), split)[1]->equal(torch::tensor({2})));
  EXPECT_FALSE(scatter(std::optional<torch::Tensor>(), split)[1].has_value());
  EXPECT_FALSE(scatter(torch::Tensor(), split)[1].defined());
  EXPECT_THAT(scatter(7.5, split), ElementsAre(7.5, 7.5));
}

TEST(ScatterGatherTest, OutputsInTuplesAndListsAreJoined) {
  using Output = std::tuple<torch::Tensor, std::vector<torch::Tensor>>;
  std::vector<Output> outputs;
  for (const int i : {1, 2}) {
    outputs.emplace_back(torch::full({i, 2}, i), std::vector{torch::full({i}, 10 * i)});
  }
  const auto [first, list] = gather_outputs(std::move(outputs), 0, torch::kCPU);
  EXPECT_TRUE(first.equal(torch::tensor({{1, 1}, {2, 2}, {2, 2}})));
  EXPECT_TRUE(list.at(0).equal(torch::tensor({10, 20, 20})));
}

TEST(ScatterGatherTest, NumbersBecomeAVectorWithOneEntryForEachPart) {
  EXPECT_TRUE(gather({torch::tensor(1.5), torch::tensor(2.5)}, 0, torch::kCPU)
                  .equal(torch::tensor({1.5, 2.5})));
}

TEST(ScatterGatherTest, TensorsWithDifferentNumbersOfSamplesAreAUsageError) {
  SampleCount samples(0);
  samples.add(torch::zeros({3, 2}));
  samples.add(5);
  EXPECT_EQ(samples.count(), 3);
  EXPECT_THAT(thrown_text([&] { samples.add(torch::zeros({2})); }), HasSubstr("usage: "));
  EXPECT_THAT(thrown_text([&] { samples.add(torch::tensor(1)); }), HasSubstr("of shape []"));
  EXPECT_THAT(thrown_text([] { (void)SampleCount(0).count(); }), HasSubstr("no argument to split"));
}

}  // namespace
}  // namespace peal::train
