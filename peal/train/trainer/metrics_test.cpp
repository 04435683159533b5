#include "peal/train/trainer/metrics.h"

#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using testing::on_ranks;
using ::testing::Pair;

using Means = std::map<std::string, double>;

TEST(MetricsTest, MeansAreOverTheSamplesOfAllRanks) {
  const auto results = on_ranks(3, [](const ProcessGroupPtr& group) {
    Metrics metrics;
    const double rank = group->rank();
    metrics.add("loss", rank, 1 + rank);  // 0 x 1, 1 x 2, 2 x 3
    metrics.add("loss", 10, rank == 2 ? 4 : 0);
    metrics.add("accuracy", 0.5, 2);
    return metrics.reduce(*group);
  });
  for (const Means& means : results) {
    EXPECT_THAT(means,
                ElementsAre(Pair("accuracy", 0.5), Pair("loss", DoubleNear(48.0 / 10, 1e-12))));
  }
}

TEST(MetricsTest, ARankWithoutSamplesGetsTheMeansOfTheOthers) {
  for (const Rank with_data : {0, 1, 2}) {
    const auto results = on_ranks(3, [&](const ProcessGroupPtr& group) {
      Metrics metrics;
      if (group->rank() == with_data) metrics.add("loss", 7, 2);
      return metrics.reduce(*group);
    });
    EXPECT_THAT(results, ::testing::Each(Means{{"loss", 7}}));
  }
}

TEST(MetricsTest, WithoutAnySamplesThereAreNoMeans) {
  const auto results =
      on_ranks(2, [](const ProcessGroupPtr& group) { return Metrics().reduce(*group); });
  EXPECT_THAT(results, ::testing::Each(Means()));
}

TEST(MetricsTest, DifferentNamesAreAMismatchOnEveryRank) {
  const auto errors = on_ranks(2, [](const ProcessGroupPtr& group) {
    Metrics metrics;
    metrics.add(group->rank() == 0 ? "loss" : "accuracy", 1, 1);
    return testing::thrown_text([&] { metrics.reduce(*group); });
  });
  EXPECT_THAT(errors,
              ::testing::Each(::testing::AllOf(::testing::HasSubstr("mismatch"),
                                               ::testing::HasSubstr("same names"))));
}

TEST(MetricsTest, ANameIsALine) {
  Metrics metrics;
  for (const std::string& name : {std::string(), std::string("a\nb"), std::string("a\0b", 3)}) {
    EXPECT_THAT(testing::thrown_text([&] { metrics.add(name, 1, 1); }),
                ::testing::HasSubstr("usage"));
  }
}

}  // namespace
}  // namespace peal::train
