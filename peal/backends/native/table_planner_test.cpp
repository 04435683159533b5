#include "peal/backends/native/table_planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/error_of.h"

namespace peal::native {
namespace {

using testing::HasSubstr;

std::string_view chosen(const Config& config, Operation operation, Elements count) {
  TablePlanner planner(0, config);
  const schedule::Problem problem{.operation = operation,
                                  .ranks = 4,
                                  .ranks_per_host = 4,
                                  .count = count,
                                  .stage_limit = Elements(1 << 20)};
  return plan::algorithms()[planner.choose(problem, 4_B).algorithm].name;
}

TEST(TablePlannerTest, ChoosesAndPlansByTheConfiguration) {
  Config config;
  EXPECT_EQ(chosen(config, Operation::kAllReduce, Elements(1)), "inline");
  config.tune = "all_reduce:0-4k:direct;all_reduce:4k-inf:ring";
  EXPECT_EQ(chosen(config, Operation::kAllReduce, Elements(1024)), "direct");
  EXPECT_EQ(chosen(config, Operation::kAllReduce, Elements(1025)), "ring");
  config.algorithm = "halving_doubling";
  EXPECT_EQ(chosen(config, Operation::kAllReduce, Elements(1)), "halving_doubling");
}

TEST(TablePlannerTest, VerificationDoesNotChangeThePlan) {
  Config config;
  TablePlanner plain(1, config);
  config.verify = true;
  TablePlanner verifying(1, config);
  for (const Operation operation : kAllCollectives) {
    const schedule::Problem problem{.operation = operation,
                                    .ranks = 4,
                                    .ranks_per_host = 4,
                                    .count = Elements(operation == Operation::kBarrier ? 0 : 9999),
                                    .in_place = operation == Operation::kBroadcast,
                                    .stage_limit = Elements(1 << 20)};
    const std::uint8_t algorithm = plain.choose(problem, 4_B).algorithm;
    EXPECT_EQ(verifying.plan(algorithm, problem), plain.plan(algorithm, problem));
  }
}

TEST(TablePlannerTest, AWrongScheduleIsAnErrorThatNamesTheStep) {
  const schedule::Problem problem{
      .operation = Operation::kBroadcast, .ranks = 2, .count = Elements(8), .in_place = true};
  schedule::Schedule wrong = plan_all(plan::algorithm_named("binomial_tree"), problem);
  check_schedule(wrong, "binomial_tree");
  std::get<schedule::Move>(wrong.parts[1].steps.front()).count = Elements(7);
  const Error error = error_of([&] { check_schedule(wrong, "binomial_tree"); });
  EXPECT_EQ(error.kind(), ErrorKind::kBug);
  EXPECT_THAT(error.what(), HasSubstr("broadcast by binomial_tree is wrong"));
  EXPECT_THAT(error.what(), HasSubstr("rank 1, step 0"));
}

TEST(TablePlannerTest, AWrongValueNamesItsVariable) {
  Config config;
  config.tune = "all_reduce:0-4k:rign";
  const Error error = error_of([&] { TablePlanner(0, config); });
  EXPECT_EQ(error.kind(), ErrorKind::kUsage);
  EXPECT_THAT(error.what(), HasSubstr("PEAL_TUNE: row 1, \"all_reduce:0-4k:rign\""));
}

}  // namespace
}  // namespace peal::native
