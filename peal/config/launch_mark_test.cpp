#include "peal/config/launch_mark.h"

#include <map>

#include <gtest/gtest.h>

namespace peal {
namespace {

using Variables = std::map<std::string, std::string>;

/// The environment that `peal run` gives to rank 1 of 4.
Variables of_rank_1() {
  Variables variables = {{"PEAL_JOB", "outer"},
                         {"PEAL_FLIGHT_DIR", "/flights"},
                         {"PEAL_INJECT", "rank 1 kill at operation 10"}};
  variables[kLaunchMark] = launch_mark(fixed_environment(variables), 1, 4);
  return variables;
}

TEST(LaunchMarkTest, TheMarkedRankKeepsItsVariables) {
  const Environment environment = fixed_environment(of_rank_1());
  EXPECT_EQ(relation(environment, 1, 4), Relation::kRank);
  const Environment own = own_environment(environment, Relation::kRank);
  EXPECT_EQ(own("PEAL_FLIGHT_DIR"), "/flights");
}

TEST(LaunchMarkTest, WithoutAValidMarkEachProcessIsARank) {
  Variables variables = of_rank_1();
  for (const std::string mark : {"", "nonsense", "1 4 abc", "1"}) {
    variables[kLaunchMark] = mark;
    EXPECT_EQ(relation(fixed_environment(variables), 3, 9), Relation::kRank) << mark;
    EXPECT_FALSE(is_inherited(fixed_environment(variables), "PEAL_JOB")) << mark;
  }
  variables.erase(kLaunchMark);
  EXPECT_EQ(relation(fixed_environment(variables), 3, 9), Relation::kRank);
}

TEST(LaunchMarkTest, AnotherRankOrWorldSizeLosesTheRecordAndTheFaults) {
  const Environment environment = fixed_environment(of_rank_1());
  EXPECT_EQ(relation(environment, 0, 4), Relation::kOtherRank);
  EXPECT_EQ(relation(environment, 1, 2), Relation::kOtherRank);
  const Environment own = own_environment(environment, Relation::kOtherRank);
  EXPECT_EQ(own("PEAL_FLIGHT_DIR"), std::nullopt);
  EXPECT_EQ(own("PEAL_INJECT"), std::nullopt);
  EXPECT_EQ(own("PEAL_JOB"), "outer");  // its ranks meet under this name
}

TEST(LaunchMarkTest, AnotherLauncherOrJobLosesTheJobNameToo) {
  Variables torchrun = of_rank_1();
  torchrun["TORCHELASTIC_RUN_ID"] = "none";
  EXPECT_EQ(relation(fixed_environment(torchrun), 1, 4), Relation::kInnerJob);
  const Environment own = own_environment(fixed_environment(torchrun), Relation::kInnerJob);
  EXPECT_EQ(own("PEAL_JOB"), std::nullopt);
  EXPECT_EQ(own("PEAL_FLIGHT_DIR"), std::nullopt);
  Variables spawned = of_rank_1();
  spawned["PEAL_JOB"] = "inner";
  EXPECT_EQ(relation(fixed_environment(spawned), 1, 4), Relation::kInnerJob);
  EXPECT_EQ(own_environment(fixed_environment(spawned), Relation::kInnerJob)("PEAL_JOB"), "inner");
}

TEST(LaunchMarkTest, VariablesThatAnInnerJobHasSetStay) {
  Variables variables = of_rank_1();
  variables["PEAL_FLIGHT_DIR"] = "/inner";
  variables["PEAL_INJECT"] = "rank 0 kill at operation 1";
  const Environment own = own_environment(fixed_environment(variables), Relation::kOtherRank);
  EXPECT_EQ(own("PEAL_FLIGHT_DIR"), "/inner");
  EXPECT_EQ(own("PEAL_INJECT"), "rank 0 kill at operation 1");
}

TEST(LaunchMarkTest, HorovodsNamesOfTheRankBelongToTheMarkedRankOnly) {
  Variables variables = of_rank_1();
  variables["HOROVOD_RANK"] = "1";
  variables["HOROVOD_HOSTNAME"] = "a";
  variables[kLaunchMark] = launch_mark(fixed_environment(variables), 1, 4);
  const Environment outer = fixed_environment(variables);
  EXPECT_EQ(own_environment(outer, Relation::kRank)("HOROVOD_RANK"), "1");
  for (const Relation relation : {Relation::kOtherRank, Relation::kInnerJob}) {
    EXPECT_EQ(own_environment(outer, relation)("HOROVOD_RANK"), std::nullopt);
    EXPECT_EQ(own_environment(outer, relation)("HOROVOD_HOSTNAME"), std::nullopt);
  }
  EXPECT_FALSE(is_inherited(outer, "HOROVOD_SIZE")) << "it is not set";
  variables["HOROVOD_RANK"] = "0";  // by an inner launcher, on a host of the same name
  const Environment inner = fixed_environment(variables);
  EXPECT_EQ(own_environment(inner, Relation::kOtherRank)("HOROVOD_RANK"), "0");
  EXPECT_EQ(own_environment(inner, Relation::kOtherRank)("HOROVOD_HOSTNAME"), "a");
}

TEST(LaunchMarkTest, APealRunInsideATorchrunIsNotAnInnerJob) {
  Variables variables = {{"PEAL_JOB", "outer"}, {"TORCHELASTIC_RUN_ID", "none"}};
  variables[kLaunchMark] = launch_mark(fixed_environment(variables), 0, 2);
  EXPECT_EQ(relation(fixed_environment(variables), 0, 2), Relation::kRank);
}

}  // namespace
}  // namespace peal
