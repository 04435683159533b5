#include "peal/plan/algorithm_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/error_of.h"

namespace peal::plan {
namespace {

using testing::HasSubstr;

std::string_view chosen(const Config& config, Operation operation, Elements count) {
  const schedule::Problem problem{.operation = operation,
                                  .ranks = 4,
                                  .ranks_per_host = 4,
                                  .count = count,
                                  .stage_limit = Elements(1 << 20)};
  return AlgorithmSettings(config).choose(problem, 4_B).name;
}

TEST(AlgorithmSettingsTest, PealTunePrecedesTheBuiltInTable) {
  Config config;
  EXPECT_EQ(chosen(config, Operation::kAllReduce, Elements(1)), "inline");
  config.tune = "all_reduce:0-4k:direct;all_reduce:4k-inf:ring";
  EXPECT_EQ(chosen(config, Operation::kAllReduce, Elements(1024)), "direct");
  EXPECT_EQ(chosen(config, Operation::kAllReduce, Elements(1025)), "ring");
  EXPECT_EQ(chosen(config, Operation::kBroadcast, Elements(1)), "inline");
}

TEST(AlgorithmSettingsTest, PealAlgorithmPrecedesPealTuneIfItApplies) {
  Config config;
  config.tune = "all_reduce:0-inf:ring;all_to_all:0-inf:pairwise";
  config.algorithm = "halving_doubling";
  EXPECT_EQ(chosen(config, Operation::kAllReduce, Elements(1)), "halving_doubling");
  EXPECT_EQ(chosen(config, Operation::kAllToAll, Elements(1)), "pairwise");
}

TEST(AlgorithmSettingsTest, ErrorsNameTheVariableTheFileAndTheLine) {
  Config config;
  config.tune = "all_reduce:0-4k:rign";
  const Error in_variable = error_of([&] { AlgorithmSettings{config}; });
  EXPECT_EQ(in_variable.kind(), ErrorKind::kUsage);
  EXPECT_THAT(in_variable.what(), HasSubstr("PEAL_TUNE: row 1, \"all_reduce:0-4k:rign\": "));
  config.tune = "# mine\n\nbarrier:0-inf:direct\nall_reduce:0-4k:rign\n";
  config.tune_file = "/etc/peal/tune";
  EXPECT_THAT(error_of([&] { AlgorithmSettings{config}; }).what(),
              HasSubstr("PEAL_TUNE=@/etc/peal/tune: line 4, \"all_reduce:0-4k:rign\": "));
  config = {};
  config.algorithm = "rign";
  EXPECT_THAT(error_of([&] { AlgorithmSettings{config}; }).what(),
              HasSubstr("PEAL_ALGORITHM: there is no algorithm \"rign\""));
}

}  // namespace
}  // namespace peal::plan
