#include "peal/bench/tune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/plan/table.h"

namespace peal::bench {
namespace {

using testing::Contains;

constexpr Bytes kStage = 3_MiB;

Result took(const std::string& algorithm,
            Bytes size,
            double median,
            const char* variant = "foreign",
            const char* transport = "shm") {
  return {.the_case = make_case(Op::kAllReduce, DType::kF32, 2, size, Place::kOut),
          .backend = tuned_backend(algorithm),
          .transport = transport,
          .variant = variant,
          .time = {.median = median}};
}

TEST(TuneTest, RangesMeetBetweenTheSizesThatWereMeasured) {
  EXPECT_EQ(tune_text({took("inline", 1_KiB, 1),
                       took("direct", 1_KiB, 2),
                       took("inline", 4_KiB, 4),
                       took("direct", 4_KiB, 3),
                       took("inline", 1_MiB, 90),
                       took("direct", 1_MiB, 20)}),
            "all_reduce:0-2k:inline;all_reduce:2k-inf:direct");
}

TEST(TuneTest, OneWinnerIsOneRange) {
  EXPECT_EQ(tune_text({took("direct", 4_B, 1), took("direct", 64_B, 1)}),
            "all_reduce:0-inf:direct");
  EXPECT_EQ(tune_text({}), "");
}

TEST(TuneTest, WhatWasMeasuredBetweenHostsIsSaidOfThoseOnly) {
  EXPECT_EQ(tune_text({took("ring", 4_B, 1, "default", "tcp")}), "all_reduce@hosts:0-inf:ring");
  EXPECT_EQ(tune_text({took("ring", 4_B, 1, "foreign", "shm")}), "all_reduce@host:0-inf:ring");
}

TEST(TuneTest, TheTextIsWhatPealTuneTakes) {
  const std::string text = tune_text({took("ring", 1_KiB, 1, "default", "shm+tcp"),
                                      took("pairwise", 1_KiB, 2, "default", "shm+tcp"),
                                      took("ring", 1_MiB, 2, "default", "shm+tcp"),
                                      took("pairwise", 1_MiB, 1, "default", "shm+tcp")});
  EXPECT_EQ(text, "all_reduce@levels:0-32k:ring;all_reduce@levels:32k-inf:pairwise");
  const plan::Table table = plan::parse_table(text);
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(plan::to_text(table, ";"), text);
}

TEST(TuneTest, NoiseDoesNotTakeOver) {
  EXPECT_EQ(tune_text({took("direct", 4_B, 1),
                       took("inline", 4_B, 2),
                       took("direct", 64_B, 1),
                       took("inline", 64_B, 0.97)}),
            "all_reduce:0-inf:direct");
}

TEST(TuneTest, AllKindsOfMemoryCountAndAllMustHaveBeenDone) {
  EXPECT_EQ(tune_text({took("direct", 4_B, 1, "registered"),
                       took("direct", 4_B, 10, "foreign"),
                       took("inline", 4_B, 2, "registered"),
                       took("inline", 4_B, 3, "foreign"),
                       took("ring", 4_B, 0.1, "registered")}),
            "all_reduce:0-inf:inline");
}

TEST(TuneTest, AnAlgorithmAppliesWhereItsPlannerDoes) {
  const Case c = make_case(Op::kAllReduce, DType::kF32, 4, 1_MiB, Place::kOut);
  EXPECT_THAT(algorithm_names(), Contains("ring"));
  EXPECT_TRUE(algorithm_applies("direct", c, 4, kStage));
  EXPECT_FALSE(algorithm_applies("direct", c, 1, kStage));
  EXPECT_TRUE(algorithm_applies("ring", c, 1, kStage));
}

TEST(TuneTest, WhatSharesMemoryMayStageAThirdOfTheStageWhateverTheType) {
  for (const DType dtype : {DType::kU8, DType::kBF16, DType::kF32, DType::kF64}) {
    const auto applies = [&](Bytes size, Bytes stage) {
      const Case c = make_case(Op::kAllReduce, dtype, 2, size, Place::kOut);
      return algorithm_applies("inline", c, 2, stage);
    };
    EXPECT_TRUE(applies(1_MiB, 3_MiB)) << name_of(dtype);
    EXPECT_FALSE(applies(1_MiB + 8_B, 3_MiB)) << name_of(dtype);
    EXPECT_TRUE(applies(2_MiB, 6_MiB)) << name_of(dtype);
    EXPECT_FALSE(applies(64_KiB, 96_KiB)) << name_of(dtype);
  }
}

TEST(TuneTest, WhatSharesNoMemoryMayStageAllOfIt) {
  const auto applies = [](Bytes size) {
    const Case c = make_case(Op::kReduceScatter, DType::kF32, 4, size, Place::kOut);
    return algorithm_applies("halving_doubling", c, 1, kStage);
  };
  EXPECT_TRUE(applies(kStage * 2));  // half of it is staged
  EXPECT_FALSE(applies(kStage * 2 + 16_B));
}

TEST(TuneTest, EveryCollectiveHasAnAlgorithmOnOneHostAndOnSeveral) {
  for (const Op op : kAllOps) {
    for (const int ranks_per_host : {1, 2, 4}) {
      const Case c = make_case(op, DType::kF32, 4, 1_MiB, Place::kOut);
      const bool any = std::ranges::any_of(algorithm_names(), [&](const std::string& name) {
        return algorithm_applies(name, c, ranks_per_host, kStage);
      });
      EXPECT_EQ(any, op != Op::kSendRecv) << describe(c);
    }
  }
}

}  // namespace
}  // namespace peal::bench
