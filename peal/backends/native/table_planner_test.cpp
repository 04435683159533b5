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

TEST(TablePlannerTest, ChoosesAndPlansAsTheConfigurationSays) {
  Config config;
  EXPECT_EQ(chosen(config, Operation::kAllReduce, Elements(1)), "inline");
  config.tune = "all_reduce:0-4k:direct;all_reduce:4k-inf:ring";
  EXPECT_EQ(chosen(config, Operation::kAllReduce, Elements(1024)), "direct");
  EXPECT_EQ(chosen(config, Operation::kAllReduce, Elements(1025)), "ring");
  config.algorithm = "halving_doubling";
  EXPECT_EQ(chosen(config, Operation::kAllReduce, Elements(1)), "halving_doubling");
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
