// Random drills: PEAL_TEST_DRILLS of them, from the seed PEAL_TEST_DRILL_SEED on. `scripts/drill`
// runs many.
#include "tests/drill/drill.h"

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace peal::testing {
namespace {

unsigned number_from(const char* variable, unsigned otherwise) {
  const char* const text = std::getenv(variable);
  return text != nullptr ? static_cast<unsigned>(std::stoul(text)) : otherwise;
}

TEST(DrillTest, SurvivorsEndInTimeWithTheTrueCauseAndLeaveNothingBehind) {
  const unsigned first = number_from("PEAL_TEST_DRILL_SEED", 1);
  const unsigned count = number_from("PEAL_TEST_DRILLS", 16);
  std::map<std::string, int> kinds;
  std::chrono::nanoseconds slowest{};
  int survivors = 0;
  unsigned inconclusive = 0;
  for (unsigned seed = first; seed < first + count; ++seed) {
    const Drill drill = random_drill(seed);
    const DrillResult result = run(drill);
    if (result.inconclusive) ++inconclusive;
    ++kinds[fmt::format(
        "{} in {} over {}", name_of(drill.action), name_of(drill.phase), drill.transport)];
    slowest = std::max(slowest, result.slowest_notice);
    survivors += result.survivors_ended;
    for (const std::string& complaint : result.complaints) {
      ADD_FAILURE() << describe(drill) << "\n" << complaint;
    }
  }
  std::cout << fmt::format(
      "{} drills, {} of them without a strike, {} survivors ended by them, the slowest {:.0f} ms "
      "after the "
      "kill or the timeout\n",
      count,
      inconclusive,
      survivors,
      std::chrono::duration<double, std::milli>(slowest).count());
  for (const auto& [kind, times] : kinds) std::cout << fmt::format("  {:3} {}\n", times, kind);
}

TEST(DrillTest, RankArgumentsDescribeTheWholeDrill) {
  for (unsigned seed = 1; seed < 100; ++seed) {
    EXPECT_EQ(drill_of(rank_arguments(random_drill(seed))), random_drill(seed));
  }
}

}  // namespace
}  // namespace peal::testing
