#include "peal/engine/plan_cache.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/schedule/text.h"

namespace peal::engine {
namespace {

using schedule::Part;
using schedule::Problem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Returns the same part for every problem.
class OnePartPlanner final : public Planner {
 public:
  explicit OnePartPlanner(bool opens) : opens_(opens) {}

  Choice choose(const Problem&, Bytes) override {
    ++choices;
    return {.algorithm = 3, .opens = opens_};
  }
  Part plan(std::uint8_t, const Problem& problem) override {
    asked.push_back(problem.registered);
    return part;
  }

  Part part;
  int choices = 0;
  std::vector<std::vector<bool>> asked;

 private:
  bool opens_;
};

/// The part of rank 0 with these steps.
Part part_of(const std::string& steps) {
  return schedule::parse_schedule("all_reduce ranks=3 per_host=3\nrank 0\n" + steps).parts.front();
}

constexpr Surroundings kThreeOnAHost{
    .self = 0, .ranks = 3, .ranks_per_host = 3, .stage = 1_MiB, .cache = 1_MiB};

Problem all_reduce_of(std::int64_t count) {
  return {.operation = Operation::kAllReduce, .count = Elements(count)};
}

const CachedPlan& found(PlanCache& cache, const Problem& problem) {
  return cache.find(problem, DType::kF32, ReduceOp::Kind::kSum);
}

TEST(PlanCacheTest, ChoosesOnceForEachProblem) {
  OnePartPlanner planner(false);
  PlanCache cache(kThreeOnAHost, planner);
  const CachedPlan& plan = found(cache, all_reduce_of(8));
  EXPECT_EQ(plan.problem.ranks, 3);
  EXPECT_EQ(plan.fingerprint.algorithm, 3);
  const std::uint64_t digest = plan.digest;
  EXPECT_NE(found(cache, all_reduce_of(9)).digest, digest);
  EXPECT_EQ(found(cache, all_reduce_of(8)).digest, digest);
  EXPECT_EQ(planner.choices, 2);
}

TEST(PlanCacheTest, ChoosesEachTimeForUnevenCounts) {
  OnePartPlanner planner(false);
  PlanCache cache(kThreeOnAHost, planner);
  const Problem uneven{.operation = Operation::kAllGather,
                       .counts = {Elements(1), Elements(2), Elements(3)}};
  found(cache, uneven);
  found(cache, uneven);
  EXPECT_EQ(planner.choices, 2);
}

TEST(PlanCacheTest, AFullCacheDropsOnlyTheOldestPlan) {
  constexpr int kMost = 256;
  OnePartPlanner planner(false);
  PlanCache cache(kThreeOnAHost, planner);
  for (int count = 0; count <= kMost; ++count) found(cache, all_reduce_of(count));
  planner.choices = 0;
  for (int count = 1; count <= kMost; ++count) found(cache, all_reduce_of(count));
  EXPECT_EQ(planner.choices, 0);
  found(cache, all_reduce_of(0));
  EXPECT_EQ(planner.choices, 1);
}

TEST(PlanCacheTest, PlansEachPartOnce) {
  OnePartPlanner planner(true);
  planner.part = part_of("signal 1\nwait [1:3] 1\n");
  PlanCache cache(kThreeOnAHost, planner);
  CachedPlan& plan = cache.find(all_reduce_of(8), DType::kF32, ReduceOp::Kind::kSum);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(cache.part(plan, HostMemory::kForeign).opening, 0u)
        << "the rank knows its part already";
    EXPECT_EQ(cache.part(plan, HostMemory::kMixed).opening, 2u);
    EXPECT_EQ(cache.part(plan, HostMemory::kRegistered).opening, 2u);
  }
  EXPECT_THAT(planner.asked,
              ElementsAre(ElementsAre(false, false, false),
                          ElementsAre(true, false, false),
                          ElementsAre(true, true, true)));
}

TEST(PlanCacheTest, APartWithoutTheOpeningIsABug) {
  for (const char* const steps : {"",
                                  "signal 1\n",
                                  "wait [1:3] 1\nsignal 1\n",
                                  "signal 1\nwait [1] 1\n",
                                  "signal 1\nwait [1:3] 2\n"}) {
    OnePartPlanner planner(true);
    planner.part = part_of(std::string(steps) + "move input[0]@0 -> output[0]@0 x8\n");
    PlanCache cache(kThreeOnAHost, planner);
    CachedPlan& plan = cache.find(all_reduce_of(8), DType::kF32, ReduceOp::Kind::kSum);
    try {
      cache.part(plan, HostMemory::kRegistered);
      ADD_FAILURE() << steps;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kBug);
      EXPECT_THAT(error.what(), HasSubstr("all_reduce"));
    }
  }
}

TEST(PlanCacheTest, OnlyNonRootRanksLearnFromTheOpeningOfABroadcast) {
  for (const Rank root : {0, 1}) {
    OnePartPlanner planner(true);
    planner.part = part_of(root == 0 ? "signal 1\n" : "wait [1] 1\n");
    PlanCache cache(kThreeOnAHost, planner);
    CachedPlan& plan =
        cache.find({.operation = Operation::kBroadcast, .root = root, .count = Elements(8)},
                   DType::kF32,
                   ReduceOp::Kind::kSum);
    EXPECT_EQ(cache.part(plan, HostMemory::kRegistered).opening, root == 0 ? 0u : 1u);
  }
}

TEST(PlanCacheTest, AnEmptyPartHasNoOpening) {
  OnePartPlanner planner(true);
  PlanCache cache(kThreeOnAHost, planner);
  CachedPlan& plan = cache.find(all_reduce_of(0), DType::kF32, ReduceOp::Kind::kSum);
  EXPECT_EQ(cache.part(plan, HostMemory::kRegistered).opening, 0u);
}

// ---- a planned part

PlannedPart planned(const std::string& steps) {
  return {part_of(steps), 3, kernels::Stores::kCached};
}

TEST(PlannedPartTest, CountsSentAndReceivedElementsByPeer) {
  const PlannedPart part = planned(
      "move input[0]@0 -> wire[1]@0 x3\n"
      "move input[0]@3 -> wire[1]@3 x4\n"
      "move wire[2]@0, input[0]@0 -> output[0]@0 x5\n");
  EXPECT_THAT(part.sent, ElementsAre(Elements(0), Elements(7), Elements(0)));
  EXPECT_THAT(part.received, ElementsAre(Elements(0), Elements(0), Elements(5)));
}

TEST(PlannedPartTest, RecognisesAnExchangeWithAndWithoutStepsBefore) {
  const std::string in = "move input[0]@0 -> stage[0]@0 x8\n";
  const std::string out = "move input[0]@0, stage[1:3]@0 -> output[0]@0 x8 finish\n";
  EXPECT_TRUE(planned(in + "signal 1\nwait [1:3] 1\n" + out).is_exchange);
  EXPECT_TRUE(planned("wait [1:3] 0\n" + in + "signal 1\nwait [1:3] 1\n" + out).is_exchange);
  const PlannedPart opened =
      planned("signal 1\nwait [1:3] 0\n" + in + "signal 2\nwait [1:3] 2\n" + out);
  EXPECT_TRUE(opened.is_exchange);
  EXPECT_EQ(opened.exchange, 2u);
  EXPECT_TRUE(planned("move input[0]@0 -> output[0]@0 x8\n" + in + "signal 1\nwait [1:3] 1\n" + out)
                  .is_exchange);
}

TEST(PlannedPartTest, OtherPartsAreNotAnExchange) {
  const std::string in = "move input[0]@0 -> stage[0]@0 x8\n";
  const std::string out = "move input[0]@0, stage[1:3]@0 -> output[0]@0 x8 finish\n";
  EXPECT_FALSE(planned("").is_exchange);
  EXPECT_FALSE(planned("move input[0]@0 -> wire[1]@0 x8\n" + in + "signal 1\nwait [1:3] 1\n" + out)
                   .is_exchange)
      << "a message before";
  EXPECT_FALSE(planned(in + "signal 1\nwait [1:3] 1\n" + out + out).is_exchange) << "moves after";
  EXPECT_FALSE(planned(in + in + in + in + in + "signal 1\nwait [1:3] 1\n" + out).is_exchange)
      << "in pieces";
  EXPECT_FALSE(planned(in + "signal 2\nwait [1:3] 1\n" + out).is_exchange) << "another value";
  EXPECT_FALSE(
      planned("move input[0]@0 -> wire[1]@0 x8\nsignal 1\nwait [1:3] 1\n" + out).is_exchange)
      << "over the wire";
  EXPECT_FALSE(
      planned(in + "signal 1\nwait [1:3] 1\nmove wire[1]@0 -> output[0]@0 x8\n").is_exchange)
      << "over the wire";
}

}  // namespace
}  // namespace peal::engine
