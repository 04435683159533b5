#include "peal/bench/algorithm.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/bench/tune.h"

namespace peal::bench {
namespace {

using testing::Contains;

constexpr Bytes kStage = 3_MiB;

TEST(AlgorithmTest, TheAlgorithmIsTheOneThatPealUsesEvenIfAForcedOneDoesNotApply) {
  const auto chosen = [](Config config, Op op, Bytes size, int ranks_per_host) {
    const Case c = make_case(op, DType::kF32, 4, size, BlockPlace::kOut);
    return algorithm_of(plan::AlgorithmSettings(config), c, {ranks_per_host, kStage});
  };
  EXPECT_EQ(chosen({}, Op::kAllReduce, 1_KiB, 4), "inline");
  EXPECT_EQ(chosen({}, Op::kAllReduce, 1_MiB, 4), "direct");
  EXPECT_EQ(chosen({}, Op::kAllReduce, 1_KiB, 1), "pairwise");
  EXPECT_EQ(chosen({}, Op::kAllReduce, 1_KiB, 2), "two_level");
  EXPECT_EQ(chosen({}, Op::kSendRecv, 1_KiB, 4), "");
  Config config;
  config.tune = "all_reduce:0-4k:direct";
  EXPECT_EQ(chosen(config, Op::kAllReduce, 1_KiB, 4), "direct");
  config.algorithm = "two_level";
  EXPECT_EQ(chosen(config, Op::kAllReduce, 1_KiB, 2), "two_level");
  EXPECT_EQ(chosen(config, Op::kAllReduce, 1_KiB, 4), "direct");
}

TEST(AlgorithmTest, AnAlgorithmAppliesIfItsPlannerApplies) {
  const Case c = make_case(Op::kAllReduce, DType::kF32, 4, 1_MiB, BlockPlace::kOut);
  EXPECT_THAT(algorithm_names(), Contains("ring"));
  EXPECT_TRUE(algorithm_applies("direct", c, {4, kStage}));
  EXPECT_FALSE(algorithm_applies("direct", c, {1, kStage}));
  EXPECT_TRUE(algorithm_applies("ring", c, {1, kStage}));
}

TEST(AlgorithmTest, RanksThatShareMemoryMayStageAThirdOfTheStageForAnyType) {
  for (const DType dtype : {DType::kU8, DType::kBF16, DType::kF32, DType::kF64}) {
    const auto applies = [&](Bytes size, Bytes stage) {
      const Case c = make_case(Op::kAllReduce, dtype, 2, size, BlockPlace::kOut);
      return algorithm_applies("inline", c, {2, stage});
    };
    EXPECT_TRUE(applies(1_MiB, 3_MiB)) << name_of(dtype);
    EXPECT_FALSE(applies(1_MiB + 8_B, 3_MiB)) << name_of(dtype);
    EXPECT_TRUE(applies(2_MiB, 6_MiB)) << name_of(dtype);
    EXPECT_FALSE(applies(64_KiB, 96_KiB)) << name_of(dtype);
  }
}

TEST(AlgorithmTest, RanksThatShareNoMemoryMayStageTheWholeStage) {
  const auto applies = [](Bytes size) {
    const Case c = make_case(Op::kReduceScatter, DType::kF32, 4, size, BlockPlace::kOut);
    return algorithm_applies("halving_doubling", c, {1, kStage});
  };
  EXPECT_TRUE(applies(kStage * 2));  // half of it is staged
  EXPECT_FALSE(applies(kStage * 2 + 16_B));
}

TEST(AlgorithmTest, EveryCollectiveHasAnAlgorithmOnOneHostAndOnSeveral) {
  for (const Op op : kAllOps) {
    for (const int ranks_per_host : {1, 2, 4}) {
      const Case c = make_case(op, DType::kF32, 4, 1_MiB, BlockPlace::kOut);
      const bool any = std::ranges::any_of(algorithm_names(), [&](const std::string& name) {
        return algorithm_applies(name, c, {ranks_per_host, kStage});
      });
      EXPECT_EQ(any, op != Op::kSendRecv) << describe(c);
    }
  }
}

}  // namespace
}  // namespace peal::bench
