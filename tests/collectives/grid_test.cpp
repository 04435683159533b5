// The property grid: every operation, form, type, operator and algorithm, for many sizes and
// numbers of ranks, over every transport, compared with closed forms.
#include <algorithm>
#include <iterator>
#include <random>

#include <gtest/gtest.h>

#include "peal/base/testing/sanitized.h"
#include "peal/plan/plan.h"

#include "tests/collectives/cases.h"
#include "tests/support/fabric.h"
#include "tests/support/ranks.h"
#include "tests/support/seed.h"

namespace peal::testing {
namespace {

/// Under the sanitizers, which check the use of memory and threads, a random third of the cases.
std::vector<Case> tried(const std::vector<Case>& cases) {
  if (!kSanitized) return cases;
  std::vector<Case> third;
  std::mt19937 random(seed());
  std::ranges::sample(
      cases, std::back_inserter(third), static_cast<std::ptrdiff_t>(cases.size() / 3 + 1), random);
  return third;
}

/// Runs the cases on every rank and returns the first few errors.
std::string failures_of(Fabric fabric,
                        int ranks,
                        const std::string& algorithm,
                        const std::vector<Case>& cases) {
  Config config;
  config.algorithm = algorithm;
  config.stage = 8_KiB;  // so that most staged data is cut into pieces
  Job job(fabric, ranks, config);
  const auto outcomes = on_group(
      job, [&, some = tried(cases)](ProcessGroup& group) { return run_cases(group, some); });
  return complaints(outcomes);
}

class GridTest : public ::testing::TestWithParam<std::tuple<Fabric, int>> {};

TEST_P(GridTest, EveryOperationComputesItsFormula) {
  const auto [fabric, ranks] = GetParam();
  EXPECT_EQ(failures_of(fabric, ranks, "", grid_cases(ranks, seed())), "");
}

/// Whether an algorithm applies to the operation. If not, another would run in its place.
bool is_for(const plan::Algorithm& algorithm, Operation operation, Fabric fabric, int ranks) {
  return algorithm.applies({.operation = operation,
                            .ranks = ranks,
                            .ranks_per_host = ranks_per_host(fabric, ranks),
                            .count = Elements(1),
                            .stage_limit = Elements(1000)});
}

/// Whether the algorithm applies to any operation.
bool is_of_use(std::string_view algorithm, Fabric fabric, int ranks) {
  const int local = ranks_per_host(fabric, ranks);
  if (algorithm == "direct" || algorithm == "inline") return local == ranks;
  return algorithm != "two_level" || (local > 1 && local < ranks);
}

/// Algorithms do not change how a channel cuts their data; the test above covers that.
class AlgorithmsTest : public GridTest {};

TEST_P(AlgorithmsTest, EachAlgorithmComputesTheFormula) {
  const auto [fabric, ranks] = GetParam();
  unsigned number = 0;
  for (const plan::Algorithm& algorithm : plan::algorithms()) {
    std::vector<Case> cases = grid_cases(ranks, seed() + ++number);
    std::erase_if(cases, [&, fabric = fabric, ranks = ranks](const Case& c) {
      return !is_for(algorithm, c.operation, fabric, ranks);
    });
    EXPECT_EQ(cases.empty(), !is_of_use(algorithm.name, fabric, ranks)) << algorithm.name;
    EXPECT_EQ(failures_of(fabric, ranks, std::string(algorithm.name), cases), "") << algorithm.name;
  }
}

/// For ranks that share a window. registered_test.cpp tests which cases access registered memory.
class WindowTest : public GridTest {};

TEST_P(WindowTest, LargeOperationsComputeTheirFormulasInEveryKindOfMemory) {
  const auto [fabric, ranks] = GetParam();
  EXPECT_EQ(failures_of(fabric, ranks, "", large_cases(ranks, seed())), "");
}

const auto kName = [](const auto& instance) {
  return name_of(std::get<0>(instance.param)) + "_" + std::to_string(std::get<1>(instance.param));
};
const std::vector kSeveralRanks =
    kSanitized ? std::vector{2, 3, 4, 5, 8} : std::vector{2, 3, 4, 5, 6, 7, 8, 9, 16};

INSTANTIATE_TEST_SUITE_P(OneRank,
                         GridTest,
                         ::testing::Combine(::testing::ValuesIn(kAllFabrics), ::testing::Values(1)),
                         kName);

INSTANTIATE_TEST_SUITE_P(Fabrics,
                         GridTest,
                         ::testing::Combine(::testing::ValuesIn(kAllFabrics),
                                            ::testing::ValuesIn(kSeveralRanks)),
                         kName);
INSTANTIATE_TEST_SUITE_P(Transports,
                         AlgorithmsTest,
                         ::testing::Combine(::testing::Values(Fabric::kMemory,
                                                              Fabric::kHosts,
                                                              Fabric::kShm,
                                                              Fabric::kTcp,
                                                              Fabric::kOnDemand),
                                            ::testing::ValuesIn(kSeveralRanks)),
                         kName);
INSTANTIATE_TEST_SUITE_P(
    Windows,
    WindowTest,
    ::testing::Combine(::testing::Values(Fabric::kMemory, Fabric::kHosts, Fabric::kShm),
                       ::testing::ValuesIn(kSeveralRanks)),
    kName);

}  // namespace
}  // namespace peal::testing
