#include "peal/schedule/opening.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/schedule/problem.h"
#include "peal/schedule/text.h"

namespace peal::schedule {
namespace {

std::vector<std::string> opening_of(Operation operation, Rank self, std::vector<bool> registered) {
  const Problem problem{.operation = operation,
                        .ranks = 6,
                        .ranks_per_host = 3,
                        .root = 1,
                        .count = Elements(8),
                        .registered = std::move(registered)};
  std::vector<std::string> texts;
  for (const Step& step : opening(problem, self)) texts.push_back(to_text(step));
  return texts;
}

using testing::ElementsAre;
using testing::IsEmpty;

TEST(OpeningTest, RanksWithRegisteredMemoryWaitForTheOtherRanksOfTheirHost) {
  const std::vector<bool> registered = {true, true, false, true, true, true};
  EXPECT_THAT(opening_of(Operation::kAllReduce, 0, registered),
              ElementsAre("signal 1", "wait [1:3] 1"));
  EXPECT_THAT(opening_of(Operation::kAllReduce, 1, registered),
              ElementsAre("signal 1", "wait [0:3] 1"));
  EXPECT_THAT(opening_of(Operation::kAllReduce, 2, registered), ElementsAre("signal 1"));
  EXPECT_THAT(opening_of(Operation::kReduceScatter, 5, registered),
              ElementsAre("signal 1", "wait [3:5] 1"));
}

TEST(OpeningTest, OnlyTheRootSignalsIfOnlyItsMemoryIsShared) {
  for (const Operation operation :
       {Operation::kBroadcast, Operation::kScatter, Operation::kGather}) {
    for (const bool registered : {true, false}) {
      const std::vector<bool> all(6, registered);
      EXPECT_THAT(opening_of(operation, 1, all), ElementsAre("signal 1"));
      EXPECT_THAT(opening_of(operation, 2, all), ElementsAre("wait [1] 1"));
    }
  }
}

TEST(OpeningTest, ABarrierHasNoOpening) {
  EXPECT_THAT(opening_of(Operation::kBarrier, 0, all_registered(6)), IsEmpty());
}

}  // namespace
}  // namespace peal::schedule
