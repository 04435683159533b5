#include "peal/plan/builder.h"

#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal::plan {
namespace {

using schedule::Finish;
using schedule::Move;
using schedule::Part;
using schedule::Problem;
using schedule::Ranks;
using schedule::Signal;
using schedule::Space;
using schedule::Wait;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::VariantWith;

constexpr Position kStage = stage_at(Elements(0));

Problem one_host(int ranks) { return {.ranks = ranks, .ranks_per_host = ranks}; }
Problem hosts_of_their_own(int ranks) { return {.ranks = ranks, .ranks_per_host = 1}; }

Elements wire_offset(const schedule::Step& step) {
  const Move& move = std::get<Move>(step);
  return move.to[0].space == Space::kWire ? move.to[0].offset : move.from[0].offset;
}

TEST(BuilderTest, EachPeerHasItsOwnStreamPosition) {
  Builder part(hosts_of_their_own(3), 0);
  part.send(kInput, 1, Elements(10));
  part.send(kInput, 2, Elements(20));
  part.receive(1, output_at(Elements(0)), Elements(30));
  part.send(kInput, 1, Elements(5));
  part.receive(1, output_at(Elements(30)), Elements(5));
  std::vector<std::int64_t> offsets;
  for (const auto& step : std::move(part).build().steps) offsets.push_back(wire_offset(step).value);
  EXPECT_THAT(offsets, ElementsAre(0, 0, 0, 10, 30));
}

TEST(BuilderTest, AddsNoMoveForZeroElements) {
  Builder part(one_host(2), 0);
  part.send(kInput, 1, Elements(0));
  part.receive(1, kStage, Elements(0));
  part.receive_and_reduce({1}, {kInput}, kStage, Elements(0), First::kOwn, Finish::kYes);
  part.copy(kInput, kStage, Elements(0));
  EXPECT_THAT(std::move(part).build().steps, IsEmpty());
}

TEST(BuilderTest, TheFirstWriteToTheStageWaitsForEarlierOperations) {
  Builder part(one_host(3), 1);
  part.copy(kInput, kStage, Elements(4));
  part.copy(kInput, kStage + Elements(4), Elements(4));
  part.signal(1);
  EXPECT_THAT(std::move(part).build(Elements(8)).steps,
              ElementsAre(VariantWith<Wait>(Wait{{0, 3, 1}, 0}),
                          VariantWith<Move>(testing::_),
                          VariantWith<Move>(testing::_),
                          VariantWith<Signal>(testing::_)));
}

TEST(BuilderTest, APartWithoutSignalsDoesNotWaitForEarlierOperations) {
  Builder part(one_host(3), 1);
  part.copy(kInput, kStage, Elements(4));
  EXPECT_THAT(std::move(part).build(Elements(4)).steps, ElementsAre(VariantWith<Move>(testing::_)));
}

TEST(BuilderTest, ARankThatHasMetTheOthersDoesNotWaitForEarlierOperations) {
  Builder part(one_host(2), 1);
  part.meet(1);
  part.copy(kInput, kStage, Elements(4));
  EXPECT_THAT(std::move(part).build(Elements(4)).steps,
              ElementsAre(VariantWith<Signal>(Signal{1}),
                          VariantWith<Wait>(Wait{{0, 1, 1}, 1}),
                          VariantWith<Move>(testing::_)));
}

TEST(BuilderTest, ARankAloneOnItsHostDoesNotWaitForEarlierOperations) {
  Builder part(hosts_of_their_own(2), 1);
  part.copy(kInput, kStage, Elements(4));
  EXPECT_EQ(std::move(part).build(Elements(4)).steps.size(), 1U);
}

TEST(BuilderTest, TheSpanIsTheLastSignal) {
  Builder part(one_host(2), 0);
  part.signal(1);
  part.signal(3);
  EXPECT_EQ(std::move(part).build().span, 3);
}

TEST(BuilderTest, OthersAreTheRanksBelowAndAbove) {
  const auto others = [](Rank self) {
    std::vector<Ranks> all;
    for (const auto& slice : Builder(one_host(4), self).others(kStage)) all.push_back(slice.ranks);
    return all;
  };
  EXPECT_THAT(others(0), ElementsAre(Ranks{1, 3, 1}));
  EXPECT_THAT(others(2), ElementsAre(Ranks{0, 2, 1}, Ranks{3, 1, 1}));
  EXPECT_THAT(others(3), ElementsAre(Ranks{0, 3, 1}));
}

}  // namespace
}  // namespace peal::plan
