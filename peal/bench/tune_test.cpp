#include "peal/bench/tune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/plan/choose.h"
#include "peal/plan/table.h"
#include "peal/schedule/schedule.h"

namespace peal::bench {
namespace {

constexpr Bytes kStageLimit = 3_MiB;

/// The built-in choices for all_reduce of two ranks: on one host inline up to 2 KiB and direct
/// above; between two hosts pairwise up to 256 KiB.
Result took(const std::string& algorithm,
            Bytes size,
            double median,
            const char* variant = "foreign",
            const char* transport = "shm") {
  return {.the_case = make_case(Op::kAllReduce, DType::kF32, 2, size, BlockPlace::kOut),
          .backend = tuned_backend(algorithm),
          .transport = transport,
          .variant = variant,
          .time = {.median = median, .medians = {median, median, median, median}, .rounds = 4}};
}

Result with_rounds(Result result, const std::vector<double>& medians) {
  result.time.medians = medians;
  result.time.rounds = static_cast<int>(medians.size());
  return result;
}

std::string tune_text(const std::vector<Result>& results) {
  return plan::to_text(tune(results, kStageLimit), ";");
}

TEST(TuneTest, RowsHaveOnlyAlgorithmsThatAreFasterThanTheBuiltInChoice) {
  EXPECT_EQ(tune_text({took("inline", 1_KiB, 1),
                       took("direct", 1_KiB, 2),
                       took("inline", 4_KiB, 3),
                       took("direct", 4_KiB, 4),
                       took("inline", 1_MiB, 90),
                       took("direct", 1_MiB, 20)}),
            "all_reduce:2k-64k:inline");
  EXPECT_EQ(tune_text({took("inline", 1_KiB, 1), took("direct", 1_KiB, 2)}), "");
  EXPECT_EQ(tune_text({}), "");
}

TEST(TuneTest, RowsDoNotExceedTheMeasuredSizes) {
  EXPECT_EQ(tune_text({took("ring", 1_MiB, 1), took("direct", 1_MiB, 2)}),
            "all_reduce@host:512k-1m:ring");
  EXPECT_EQ(tune_text({took("direct", 64_B, 1),
                       took("inline", 64_B, 2),
                       took("direct", 1_KiB, 1),
                       took("inline", 1_KiB, 2)}),
            "all_reduce:0-1k:direct");
}

TEST(TuneTest, ASingleRoundNeedsALargerGain) {
  const auto text = [](double median, const std::vector<double>& medians) {
    return tune_text(
        {with_rounds(took("direct", 64_B, median), medians),
         with_rounds(took("inline", 64_B, 1), std::vector<double>(medians.size(), 1))});
  };
  EXPECT_EQ(text(0.9, {0.9}), "");
  EXPECT_EQ(text(0.7, {0.7}), "all_reduce:0-64:direct");
  EXPECT_EQ(text(0.9, {0.9, 0.9}), "all_reduce:0-64:direct");
}

TEST(TuneTest, AWinInHalfOfTheRoundsIsATie) {
  const auto text = [](const std::vector<double>& medians) {
    return tune_text({with_rounds(took("direct", 64_B, 0.8), medians), took("inline", 64_B, 1)});
  };
  EXPECT_EQ(text({0.7, 0.8, 1.1, 1.1}), "");
  EXPECT_EQ(text({0.7, 0.8, 0.8, 1.1}), "all_reduce:0-64:direct");
}

TEST(TuneTest, TheBuiltInChoiceMayDependOnTheNumberOfRanks) {
  const auto of = [](const std::string& algorithm, int ranks, double median) {
    Result result = took(algorithm, 4_KiB, median);
    result.the_case = make_case(Op::kAllReduce, DType::kF32, ranks, 4_KiB, BlockPlace::kOut);
    return result;
  };
  // direct for two ranks, inline for four: together better than each alone.
  EXPECT_EQ(
      tune_text({of("direct", 2, 1), of("inline", 2, 2), of("direct", 4, 2), of("inline", 4, 1)}),
      "");
}

TEST(TuneTest, RowsMeasuredBetweenHostsApplyOnlyBetweenHosts) {
  EXPECT_EQ(tune_text({took("ring", 4_B, 1, "default", "tcp"),
                       took("pairwise", 4_B, 2, "default", "tcp")}),
            "all_reduce@hosts:0-4:ring");
  EXPECT_EQ(tune_text({took("ring", 4_B, 1), took("inline", 4_B, 2)}), "all_reduce@host:0-4:ring");
}

TEST(TuneTest, PealTuneAcceptsTheText) {
  std::vector<Result> results = {took("ring", 1_KiB, 1, "default", "shm+tcp"),
                                 took("pairwise", 1_KiB, 2, "default", "shm+tcp"),
                                 took("ring", 1_MiB, 2, "default", "shm+tcp"),
                                 took("pairwise", 1_MiB, 1, "default", "shm+tcp")};
  for (Result& result : results) {
    result.hosts = 2;
    result.the_case.ranks = 4;
  }
  const std::string text = tune_text(results);
  EXPECT_EQ(text, "all_reduce@levels:512-32k:ring;all_reduce@levels:32k-1m:pairwise");
  const plan::Table table = plan::parse_table(text);
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(plan::to_text(table, ";"), text);
}

/// The algorithm that a rank with that PEAL_TUNE uses for an all_reduce of that size between two
/// hosts.
std::string_view choice(const std::string& text, Bytes size) {
  const schedule::Problem problem{.operation = Operation::kAllReduce,
                                  .ranks = 2,
                                  .ranks_per_host = 1,
                                  .count = Elements(size / size_of(DType::kU8)),
                                  .stage_limit = Elements(kStageLimit.value)};
  return plan::choose(plan::tuned(plan::parse_table(text)), problem, size_of(DType::kU8)).name;
}

TEST(TuneTest, EachMeasuredSizeUsesItsWinner) {
  const std::vector<std::string> names = {"pairwise", "ring", "halving_doubling"};
  for (const auto& sizes : std::vector<std::vector<Bytes>>{
           {4_KiB, 8_KiB, 16_KiB, 32_KiB},  // the borders are close to the sizes
           {4_KiB, 5_KiB, 6_KiB, 7_KiB},    // no power of two lies between the sizes
           {1_B, 2_B, 3_B, 4_B, 5_B, 6_B, 7_B},
           {3000_B, 5000_B, 4097_KiB, 4098_KiB}}) {
    std::vector<Result> results;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      for (std::size_t name = 0; name < names.size(); ++name) {
        const double median = i % names.size() == name ? 1 : 9;
        results.push_back(took(names[name], sizes[i], median, "foreign", "tcp"));
        results.back().the_case.dtype = DType::kU8;
        results.back().the_case.count = Elements(sizes[i].value);
      }
    }
    const std::string text = tune_text(results);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      EXPECT_EQ(choice(text, sizes[i]), names[i % names.size()]) << sizes[i].value << ": " << text;
    }
  }
}

TEST(TuneTest, NoiseDoesNotChangeTheWinner) {
  EXPECT_EQ(tune_text({took("inline", 4_B, 9),
                       took("ring", 4_B, 1),
                       took("pairwise", 4_B, 2),
                       took("inline", 64_B, 9),
                       took("ring", 64_B, 1),
                       took("pairwise", 64_B, 0.97)}),
            "all_reduce@host:0-64:ring");
}

TEST(TuneTest, ThePreviousWinnerStaysOnlyIfItBeatsTheBuiltInChoiceToo) {
  const auto text = [](const Result& built_in, const Result& before, const Result& best) {
    return tune_text({took("direct", 4_KiB, 9), took("ring", 4_KiB, 1), built_in, before, best});
  };
  EXPECT_EQ(text(took("direct", 16_KiB, 1),
                 with_rounds(took("ring", 16_KiB, 1.3), {0.9, 0.9, 1.7, 1.7}),
                 took("pairwise", 16_KiB, 0.94)),
            "all_reduce@host:2k-8k:ring;all_reduce@host:8k-16k:pairwise");
  EXPECT_EQ(
      text(took("direct", 16_KiB, 1), took("ring", 16_KiB, 0.985), took("pairwise", 16_KiB, 0.94)),
      "all_reduce@host:2k-8k:ring;all_reduce@host:8k-16k:pairwise");
  EXPECT_EQ(
      text(took("direct", 16_KiB, 1), took("ring", 16_KiB, 0.93), took("pairwise", 16_KiB, 0.92)),
      "all_reduce@host:2k-16k:ring");
}

TEST(TuneTest, TheWinnerMustHaveDoneAllKindsOfMemory) {
  EXPECT_EQ(tune_text({took("direct", 4_B, 2, "registered"),
                       took("direct", 4_B, 3, "foreign"),
                       took("inline", 4_B, 1, "registered"),
                       took("inline", 4_B, 10, "foreign"),
                       took("ring", 4_B, 0.1, "registered")}),
            "all_reduce:0-4:direct");
}

}  // namespace
}  // namespace peal::bench
