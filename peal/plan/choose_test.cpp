#include "peal/plan/choose.h"

#include <gtest/gtest.h>

#include "peal/plan/testing/problems.h"

namespace peal::plan {
namespace {

using schedule::Problem;

/// 4-byte elements.
constexpr Bytes kElement(4);

TEST(ChooseTest, EveryProblemHasAnAlgorithm) {
  for (const int ranks : {2, 3, 4, 5, 8, 16}) {
    for (const Operation operation : kAllCollectives) {
      for (const Problem& problem : problems(operation, ranks)) {
        for (const Bytes element : {1_B, 16_B, 1_MiB}) {
          ASSERT_TRUE(choose(built_in_choices(), problem, element).applies(problem))
              << describe(problem);
        }
      }
    }
  }
}

struct Expected {
  Operation operation;
  Bytes size;
  std::string_view algorithm;
};

TEST(ChooseTest, BetweenHostsTheSizeDecidesTheAlgorithm) {
  for (const Expected& expected : {Expected{Operation::kAllReduce, 1_KiB, "recursive_doubling"},
                                   Expected{Operation::kAllReduce, 512_KiB, "halving_doubling"},
                                   Expected{Operation::kAllReduce, 64_MiB, "ring"},
                                   Expected{Operation::kBroadcast, 1_KiB, "binomial_tree"},
                                   Expected{Operation::kBroadcast, 64_MiB, "ring"},
                                   Expected{Operation::kReduce, 1_KiB, "binomial_tree"},
                                   Expected{Operation::kReduce, 64_MiB, "ring"},
                                   Expected{Operation::kGather, 8_KiB, "binomial_tree"},
                                   Expected{Operation::kScatter, 64_MiB, "pairwise"},
                                   Expected{Operation::kAllGather, 8_KiB, "recursive_doubling"},
                                   Expected{Operation::kAllGather, 64_MiB, "ring"},
                                   Expected{Operation::kReduceScatter, 8_KiB, "halving_doubling"},
                                   Expected{Operation::kReduceScatter, 64_MiB, "ring"},
                                   Expected{Operation::kAllToAll, 64_MiB, "pairwise"},
                                   Expected{Operation::kBarrier, 0_B, "recursive_doubling"}}) {
    const bool whole = expected.operation == Operation::kAllReduce ||
                       expected.operation == Operation::kReduce ||
                       expected.operation == Operation::kBroadcast;
    const Problem problem{.operation = expected.operation,
                          .ranks = 8,
                          .count = Elements(expected.size / kElement / (whole ? 1 : 8)),
                          .stage_limit = Elements(1 << 20)};
    EXPECT_EQ(choose(built_in_choices(), problem, kElement).name, expected.algorithm)
        << name_of(expected.operation) << ", " << expected.size.value << " bytes";
  }
}

TEST(ChooseTest, OnOneHostLargeOperationsAreDirectAndSmallOnesInline) {
  for (const Operation operation : kAllCollectives) {
    Problem problem{.operation = operation,
                    .ranks = 4,
                    .ranks_per_host = 4,
                    .count = Elements(operation == Operation::kBarrier ? 0 : 1 << 20),
                    .stage_limit = Elements(1 << 20)};
    EXPECT_EQ(choose(built_in_choices(), problem, kElement).name, "direct");
    if (operation == Operation::kBarrier) continue;
    problem.count = Elements(100);
    EXPECT_EQ(choose(built_in_choices(), problem, kElement).name, "inline");
  }
}

TEST(ChooseTest, AFewHostsExchangeSmallDataPairwise) {
  Problem problem{.operation = Operation::kAllReduce,
                  .ranks = 4,
                  .count = Elements(256 << 8),
                  .stage_limit = Elements(1 << 20)};
  EXPECT_EQ(choose(built_in_choices(), problem, kElement).name, "pairwise");
  problem.count += Elements(1);
  EXPECT_EQ(choose(built_in_choices(), problem, kElement).name, "halving_doubling");
}

Problem all_reduce_of(Bytes size, int ranks, int ranks_per_host) {
  return {.operation = Operation::kAllReduce,
          .ranks = ranks,
          .ranks_per_host = ranks_per_host,
          .count = Elements(size / kElement),
          .stage_limit = Elements(1 << 20)};
}

TEST(ChooseTest, HostsOfSeveralRanksSendAsLittleAsPossible) {
  for (const Expected& expected : {Expected{Operation::kAllReduce, 1_KiB, "two_level"},
                                   Expected{Operation::kAllReduce, 64_MiB, "two_level"},
                                   Expected{Operation::kBroadcast, 1_KiB, "binomial_tree"},
                                   Expected{Operation::kBroadcast, 64_MiB, "two_level"},
                                   Expected{Operation::kReduce, 1_KiB, "binomial_tree"},
                                   Expected{Operation::kReduce, 64_MiB, "two_level"},
                                   Expected{Operation::kAllGather, 8_KiB, "two_level"},
                                   Expected{Operation::kAllGather, 64_MiB, "two_level"},
                                   Expected{Operation::kReduceScatter, 1_KiB, "halving_doubling"},
                                   Expected{Operation::kReduceScatter, 8_KiB, "two_level"},
                                   Expected{Operation::kReduceScatter, 64_MiB, "two_level"},
                                   Expected{Operation::kScatter, 64_MiB, "pairwise"},
                                   Expected{Operation::kAllToAll, 64_MiB, "pairwise"},
                                   Expected{Operation::kBarrier, 0_B, "two_level"}}) {
    Problem problem = all_reduce_of(expected.size, 8, 2);
    problem.operation = expected.operation;
    const bool whole = expected.operation == Operation::kAllReduce ||
                       expected.operation == Operation::kReduce ||
                       expected.operation == Operation::kBroadcast;
    if (!whole) problem.count = problem.count / 8;
    EXPECT_EQ(choose(built_in_choices(), problem, kElement).name, expected.algorithm)
        << name_of(expected.operation) << ", " << expected.size.value << " bytes";
  }
  Problem many = all_reduce_of(1_KiB, 32, 2);
  many.operation = Operation::kAllGather;
  many.count = many.count / 32;
  EXPECT_EQ(choose(built_in_choices(), many, kElement).name, "recursive_doubling");
}

TEST(ChooseTest, UserRowsPrecedeBuiltInRows) {
  const Table table = tuned(parse_table("all_reduce@hosts:0-4k:ring;all_reduce@host:0-inf:inline"));
  EXPECT_EQ(choose(table, all_reduce_of(4_KiB, 8, 1), kElement).name, "ring");
  EXPECT_EQ(choose(table, all_reduce_of(4_KiB + kElement, 8, 1), kElement).name,
            "recursive_doubling");
  EXPECT_EQ(choose(table, all_reduce_of(64_KiB, 8, 8), kElement).name, "inline");
  Problem broadcast = all_reduce_of(4_KiB, 8, 8);
  broadcast.operation = Operation::kBroadcast;
  EXPECT_EQ(choose(table, broadcast, kElement).name, "inline")
      << "the user's rows do not cover broadcast";
}

TEST(ChooseTest, RowsBetweenHostsCountOnLevelsUnlessARowForLevelsPrecedesThem) {
  const Table hosts = tuned(parse_table("all_reduce@hosts:0-4k:ring"));
  EXPECT_EQ(choose(hosts, all_reduce_of(4_KiB, 8, 2), kElement).name, "ring");
  const Table both =
      tuned(parse_table("all_reduce@levels:0-4k:two_level;all_reduce@hosts:0-4k:ring"));
  EXPECT_EQ(choose(both, all_reduce_of(4_KiB, 8, 2), kElement).name, "two_level");
  EXPECT_EQ(choose(both, all_reduce_of(4_KiB, 8, 1), kElement).name, "ring");
}

TEST(ChooseTest, ARowCountsOnlyForItsNumbersOfRanks) {
  const Table table = tuned(parse_table("all_reduce:0-inf:3-4ranks:ring"));
  for (const int ranks : {2, 3, 4, 5}) {
    const bool is_named = ranks == 3 || ranks == 4;
    EXPECT_EQ(choose(table, all_reduce_of(4_B, ranks, ranks), kElement).name,
              is_named ? "ring" : "inline");
  }
}

TEST(ChooseTest, SkipsARowWhoseAlgorithmDoesNotApply) {
  const Table table = tuned(parse_table("all_reduce:0-inf:direct"));
  EXPECT_EQ(choose(table, all_reduce_of(4_B, 4, 4), kElement).name, "direct");
  EXPECT_EQ(choose(table, all_reduce_of(4_B, 4, 1), kElement).name, "pairwise");
}

TEST(ChooseTest, ChoosesPairwiseIfNoRowFits) {
  const Table nothing;
  EXPECT_EQ(choose(nothing, all_reduce_of(4_B, 8, 8), kElement).name, "pairwise");
  const Problem problem{.operation = Operation::kReduceScatter,
                        .ranks = 3,
                        .count = Elements(100),
                        .stage_limit = Elements(1 << 20)};
  EXPECT_EQ(choose(built_in_choices(), problem, kElement).name, "pairwise");
}

TEST(ChooseTest, WithoutAStageRanksOfOneHostSendMessages) {
  Problem problem = all_reduce_of(64_MiB, 4, 4);
  problem.stage_limit = Elements(0);
  EXPECT_EQ(choose(built_in_choices(), problem, kElement).name, "ring");
  problem.operation = Operation::kBroadcast;
  problem.in_place = true;
  EXPECT_EQ(choose(built_in_choices(), problem, kElement).name, "ring");
  for (const int ranks_per_host : {1, 4}) {
    for (const Operation operation : kAllCollectives) {
      const Problem any{.operation = operation,
                        .ranks = 4,
                        .ranks_per_host = ranks_per_host,
                        .count = Elements(operation == Operation::kBarrier ? 0 : 100)};
      EXPECT_TRUE(choose(built_in_choices(), any, kElement).applies(any)) << name_of(operation);
    }
  }
}

TEST(ChooseTest, ASizeThatSomeRanksDoNotKnowCountsAsLarge) {
  Problem problem{.operation = Operation::kScatter,
                  .ranks = 2,
                  .counts = {Elements(1), Elements(2)},
                  .stage_limit = Elements(1 << 20)};
  const Table table = parse_table("scatter:0-1m:binomial_tree;scatter:1m-inf:pairwise");
  EXPECT_EQ(choose(table, problem, kElement).name, "pairwise");
}

TEST(ChooseTest, BuiltInChoicesSurvivePrintingAndParsing) {
  EXPECT_EQ(parse_table(to_text(built_in_choices(), "\n")), built_in_choices());
}

TEST(ChooseTest, RecognisesRowsThatCanNeverCount) {
  const auto counts = [](std::string_view text) {
    return may_count(parse_table(text).rows.front(), 3_MiB);
  };
  for (const std::string_view row : {"all_reduce:0-inf:direct",
                                     "all_reduce@host:0-0:inline",
                                     "all_reduce:0-inf:two_level",
                                     "all_reduce@levels:0-inf:two_level",
                                     "all_reduce@hosts:0-inf:two_level",
                                     "all_gather@hosts:1-4:3-3ranks:ring",
                                     "all_reduce:1g-inf:1000-1000ranks:ring",
                                     "barrier:0-0:direct"}) {
    EXPECT_TRUE(counts(row)) << row;
  }
  for (const std::string_view row : {"all_reduce@hosts:0-inf:direct",
                                     "all_reduce@levels:0-inf:inline",
                                     "all_reduce@host:0-inf:two_level",
                                     "all_reduce@host:16m-inf:inline",
                                     "all_to_all:0-inf:binomial_tree",
                                     "barrier:4k-inf:direct"}) {
    EXPECT_FALSE(counts(row)) << row;
  }
}

TEST(ChooseTest, EveryBuiltInRowMayCount) {
  for (const Row& row : built_in_choices().rows) EXPECT_TRUE(may_count(row, 3_MiB)) << to_text(row);
}

}  // namespace
}  // namespace peal::plan
