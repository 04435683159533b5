// The property grid: every operation, form, type, operator and algorithm, for many sizes and
// numbers of ranks, over every transport, compared with closed forms.
#include <gtest/gtest.h>

#include "peal/plan/plan.h"

#include "tests/collectives/cases.h"
#include "tests/support/fabric.h"
#include "tests/support/ranks.h"

namespace peal::testing {
namespace {

/// Runs every case on every rank and returns the first few that went wrong.
std::string failures_of(Fabric fabric, int ranks, const std::string& algorithm) {
  Config config;
  config.algorithm = algorithm;
  config.stage = 8_KiB;  // so that most of what is staged is cut into pieces
  Job job(fabric, ranks, config);
  const std::vector<Case> cases = grid_cases(ranks);
  const auto outcomes = on_group(job, [&](ProcessGroup& group) { return run_cases(group, cases); });
  return complaints(outcomes);
}

class GridTest : public ::testing::TestWithParam<std::tuple<Fabric, int>> {};

TEST_P(GridTest, EveryOperationGivesWhatItsFormulaSays) {
  const auto [fabric, ranks] = GetParam();
  EXPECT_EQ(failures_of(fabric, ranks, ""), "");
}

/// Algorithms do not differ in how a channel cuts what they send: that is for the test above.
class AlgorithmsTest : public GridTest {};

TEST_P(AlgorithmsTest, EachGivesWhatTheFormulaSays) {
  const auto [fabric, ranks] = GetParam();
  for (const plan::Algorithm& algorithm : plan::algorithms()) {
    EXPECT_EQ(failures_of(fabric, ranks, std::string(algorithm.name)), "") << algorithm.name;
  }
}

const auto kName = [](const auto& instance) {
  return name_of(std::get<0>(instance.param)) + "_" + std::to_string(std::get<1>(instance.param));
};
const auto kRanks = ::testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 16);

INSTANTIATE_TEST_SUITE_P(Fabrics,
                         GridTest,
                         ::testing::Combine(::testing::ValuesIn(kAllFabrics), kRanks),
                         kName);
INSTANTIATE_TEST_SUITE_P(
    Transports,
    AlgorithmsTest,
    ::testing::Combine(::testing::Values(Fabric::kMemory, Fabric::kShm, Fabric::kTcp), kRanks),
    kName);

}  // namespace
}  // namespace peal::testing
