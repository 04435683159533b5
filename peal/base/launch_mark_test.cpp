#include "peal/base/launch_mark.h"

#include <map>

#include <gtest/gtest.h>

namespace peal {
namespace {

using Variables = std::map<std::string, std::string>;

/// As `peal run` gives it to rank 1 of 4.
Variables of_rank_1() {
  Variables variables = {{"PEAL_JOB", "outer"},
                         {"PEAL_FLIGHT_DIR", "/flights"},
                         {"PEAL_INJECT", "rank 1 kill at operation 10"}};
  variables[kLaunchMark] = launch_mark(fixed_environment(variables), 1, 4);
  return variables;
}

TEST(LaunchMarkTest, TheMarkedRankHasAllThatItWasGiven) {
  const Environment environment = fixed_environment(of_rank_1());
  EXPECT_EQ(kinship(environment, 1, 4), Kinship::kRank);
  const Environment own = own_environment(environment, Kinship::kRank);
  EXPECT_EQ(own("PEAL_FLIGHT_DIR"), "/flights");
}

TEST(LaunchMarkTest, WithoutAMarkOrWithOneThatCannotBeReadEveryProcessIsARank) {
  Variables variables = of_rank_1();
  for (const std::string mark : {"", "nonsense", "1 4 abc", "1"}) {
    variables[kLaunchMark] = mark;
    EXPECT_EQ(kinship(fixed_environment(variables), 3, 9), Kinship::kRank) << mark;
    EXPECT_FALSE(is_inherited(fixed_environment(variables), "PEAL_JOB")) << mark;
  }
  variables.erase(kLaunchMark);
  EXPECT_EQ(kinship(fixed_environment(variables), 3, 9), Kinship::kRank);
}

TEST(LaunchMarkTest, AnotherRankOrWorldSizeLosesTheRecordAndTheFaults) {
  const Environment environment = fixed_environment(of_rank_1());
  EXPECT_EQ(kinship(environment, 0, 4), Kinship::kOtherRank);
  EXPECT_EQ(kinship(environment, 1, 2), Kinship::kOtherRank);
  const Environment own = own_environment(environment, Kinship::kOtherRank);
  EXPECT_EQ(own("PEAL_FLIGHT_DIR"), std::nullopt);
  EXPECT_EQ(own("PEAL_INJECT"), std::nullopt);
  EXPECT_EQ(own("PEAL_JOB"), "outer");  // by which its ranks meet
}

TEST(LaunchMarkTest, AnotherLauncherOrJobLosesTheNameOfTheJobToo) {
  Variables torchrun = of_rank_1();
  torchrun["TORCHELASTIC_RUN_ID"] = "none";
  EXPECT_EQ(kinship(fixed_environment(torchrun), 1, 4), Kinship::kInnerJob);
  const Environment own = own_environment(fixed_environment(torchrun), Kinship::kInnerJob);
  EXPECT_EQ(own("PEAL_JOB"), std::nullopt);
  EXPECT_EQ(own("PEAL_FLIGHT_DIR"), std::nullopt);
  Variables spawned = of_rank_1();
  spawned["PEAL_JOB"] = "inner";
  EXPECT_EQ(kinship(fixed_environment(spawned), 1, 4), Kinship::kInnerJob);
  EXPECT_EQ(own_environment(fixed_environment(spawned), Kinship::kInnerJob)("PEAL_JOB"), "inner");
}

TEST(LaunchMarkTest, WhatAnInnerJobHasSetItselfStays) {
  Variables variables = of_rank_1();
  variables["PEAL_FLIGHT_DIR"] = "/inner";
  variables["PEAL_INJECT"] = "rank 0 kill at operation 1";
  const Environment own = own_environment(fixed_environment(variables), Kinship::kOtherRank);
  EXPECT_EQ(own("PEAL_FLIGHT_DIR"), "/inner");
  EXPECT_EQ(own("PEAL_INJECT"), "rank 0 kill at operation 1");
}

TEST(LaunchMarkTest, APealRunInsideATorchrunIsNoInnerJob) {
  Variables variables = {{"PEAL_JOB", "outer"}, {"TORCHELASTIC_RUN_ID", "none"}};
  variables[kLaunchMark] = launch_mark(fixed_environment(variables), 0, 2);
  EXPECT_EQ(kinship(fixed_environment(variables), 0, 2), Kinship::kRank);
}

}  // namespace
}  // namespace peal
