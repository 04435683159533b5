#include "peal/verify/verify.h"

#include <gtest/gtest.h>

namespace peal::verify {
namespace {

TEST(VerifyTest, AStagedAllReduceOfTwoRanksIsRight) {
  using namespace schedule;
  Schedule s;
  s.problem = {.operation = Operation::kAllReduce,
               .ranks = 2,
               .ranks_per_host = 2,
               .count = Elements(10),
               .stage_limit = Elements(100)};
  for (Rank r = 0; r < 2; ++r) {
    Part p;
    p.stage = Elements(10);
    p.span = 2;
    const Ranks both{0, 2, 1};
    const Rank other = 1 - r;
    p.steps.push_back(Wait{{other, 1, 1}, 0});
    p.steps.push_back(Move{{{Space::kInput, {r, 1, 1}, Elements(0)}},
                           {{Space::kStage, {r, 1, 1}, Elements(0)}},
                           Elements(10),
                           Finish::kNo});
    p.steps.push_back(Signal{1});
    p.steps.push_back(Wait{{other, 1, 1}, 1});
    p.steps.push_back(Move{{{Space::kStage, both, Elements(0)}},
                           {{Space::kOutput, {r, 1, 1}, Elements(0)}},
                           Elements(10),
                           Finish::kYes});
    p.steps.push_back(Signal{2});
    s.parts.push_back(p);
  }
  for (const Violation& v : verify(s)) ADD_FAILURE() << v.rank << " " << v.step << " " << v.what;
}

}  // namespace
}  // namespace peal::verify
