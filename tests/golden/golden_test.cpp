// Compares the schedules of the planners with the texts in this folder, so that a change of a
// planner shows as a diff. PEAL_TEST_ACCEPT=1 rewrites the texts.
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <ostream>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "peal/plan/plan.h"
#include "peal/schedule/text.h"
#include "peal/verify/verify.h"

namespace peal {
namespace {

using schedule::Schedule;

struct Golden {
  std::string_view name;  // the file's name
  std::string_view algorithm;
  std::string_view problem;  // as in the schedule's text
};

std::ostream& operator<<(std::ostream& out, const Golden& golden) { return out << golden.name; }

constexpr Golden kGoldens[] = {
    {"all_reduce_registered",
     "direct",
     "all_reduce ranks=2 per_host=2 count=1024 in_place registered"},
    {"all_reduce_staged", "direct", "all_reduce ranks=2 per_host=2 count=3 stage_limit=2"},
    {"all_reduce_tiny", "inline", "all_reduce ranks=4 per_host=4 count=1 stage_limit=1024"},
    {"all_reduce_ring", "ring", "all_reduce ranks=4 count=1000"},
    {"all_reduce_recursive_doubling",
     "recursive_doubling",
     "all_reduce ranks=5 count=10 stage_limit=1024"},
    {"all_reduce_halving_doubling",
     "halving_doubling",
     "all_reduce ranks=4 count=1000 stage_limit=1024 in_place"},
    {"broadcast_binomial_tree", "binomial_tree", "broadcast ranks=5 root=1 count=1000"},
    {"broadcast_staged", "direct", "broadcast ranks=3 per_host=3 count=3 stage_limit=2"},
    {"broadcast_two_level",
     "two_level",
     "broadcast ranks=4 per_host=2 root=1 count=64 stage_limit=128"},
    {"reduce_scatter_two_level",
     "two_level",
     "reduce_scatter ranks=4 per_host=2 count=8 stage_limit=1024"},
    {"all_to_all_pairwise", "pairwise", "all_to_all ranks=3 counts=1,2,3,4,5,6,0,8,9"},
    {"barrier", "direct", "barrier ranks=3 per_host=3"},
};

class GoldenTest : public testing::TestWithParam<Golden> {
 protected:
  static std::string path() {
    return std::string(PEAL_GOLDEN_FOLDER "/") + std::string(GetParam().name) + ".txt";
  }
  static std::string accepted() {
    std::ifstream file(path());
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static Schedule planned() {
    const schedule::Problem problem = schedule::parse_schedule(GetParam().problem).problem;
    return plan::plan_all(plan::algorithm_named(GetParam().algorithm), problem);
  }
};

TEST_P(GoldenTest, ThePlannersMakeTheAcceptedSchedules) {
  const std::string text = to_text(planned());
  const char* accept = std::getenv("PEAL_TEST_ACCEPT");
  if (accept != nullptr && std::string_view(accept) == "1") std::ofstream(path()) << text;
  EXPECT_EQ(text, accepted()) << "if the change is intended, run again with PEAL_TEST_ACCEPT=1";
}

TEST_P(GoldenTest, TheAcceptedTextIsAValidSchedule) {
  const Schedule schedule = schedule::parse_schedule(accepted());
  EXPECT_EQ(to_text(schedule), accepted());
  for (const verify::Violation& violation : verify::verify(schedule)) {
    ADD_FAILURE() << describe(violation);
  }
}

INSTANTIATE_TEST_SUITE_P(Texts, GoldenTest, testing::ValuesIn(kGoldens), [](const auto& test) {
  return std::string(test.param.name);
});

}  // namespace
}  // namespace peal
