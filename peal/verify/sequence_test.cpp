// Consecutive operations share stages and counters. With the smallest possible scratch: all
// sequences of three schedules, and many of five. With the scratch of the engine: long sequences.
#include <ostream>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "peal/base/testing/sanitized.h"
#include "peal/plan/plan.h"
#include "peal/schedule/problem.h"
#include "peal/schedule/scratch.h"
#include "peal/schedule/text.h"
#include "peal/verify/verify.h"

namespace peal::verify {
namespace {

using schedule::Problem;
using schedule::Schedule;
using schedule::ScratchSize;

constexpr Elements kFew(6);

bool uses_window(const Schedule& schedule) {
  return schedule.parts.front().span > 0 || schedule.parts.front().stage > Elements(0);
}

/// Appends the schedules of every algorithm and operation on one host that use the window.
void append_all(std::vector<Schedule>& all, Problem problem) {
  const Elements count = problem.count;
  for (const plan::Algorithm& algorithm : plan::algorithms()) {
    for (const Operation operation : kAllCollectives) {
      problem.operation = operation;
      const bool is_first_root = operation == Operation::kReduce || operation == Operation::kGather;
      problem.root = is_first_root ? 0 : problem.ranks - 1;
      problem.count = operation == Operation::kBarrier ? Elements(0) : count;
      problem.in_place = operation == Operation::kAllReduce;
      if (!algorithm.applies(problem)) continue;
      Schedule schedule = plan::plan_all(algorithm, problem);
      if (uses_window(schedule)) all.push_back(std::move(schedule));
    }
  }
}

/// Without registered memory; the stage has room for everything.
std::vector<Schedule> short_schedules(int ranks) {
  std::vector<Schedule> all;
  append_all(
      all, {.ranks = ranks, .ranks_per_host = ranks, .count = kFew, .stage_limit = Elements(1000)});
  return all;
}

/// Also with registered memory, and with a stage that takes the data only in pieces.
std::vector<Schedule> all_schedules(int ranks) {
  std::vector<Schedule> all = short_schedules(ranks);
  append_all(
      all,
      {.ranks = ranks, .ranks_per_host = ranks, .count = kFew, .stage_limit = Elements(4 * ranks)});
  append_all(all,
             {.ranks = ranks,
              .ranks_per_host = ranks,
              .count = kFew,
              .registered = schedule::all_registered(ranks),
              .stage_limit = Elements(1000)});
  return all;
}

void expect_right(std::span<const Schedule> row, const std::vector<Violation>& violations) {
  if (violations.empty()) return;
  std::string text = describe(violations.front());
  for (const Schedule& schedule : row) text += "\n" + to_text(schedule);
  FAIL() << text;
}

void expect_right(std::span<const Schedule> row) { expect_right(row, verify_sequence(row)); }

class SequenceTest : public testing::TestWithParam<int> {};

TEST_P(SequenceTest, EverySequenceOfThreeIsCorrect) {
  const std::vector<Schedule> all = short_schedules(GetParam());
  EXPECT_GE(all.size(), 12u);
  for (const Schedule& first : all) {
    for (const Schedule& second : all) {
      for (const Schedule& third : all) {
        ASSERT_NO_FATAL_FAILURE(expect_right(std::vector{first, second, third}));
      }
    }
  }
}

TEST_P(SequenceTest, SequencesOfFiveAreCorrect) {
  constexpr int kRows = 300;
  const std::vector<Schedule> all = all_schedules(GetParam());
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  for (int i = 0; i < kRows; ++i) {
    std::vector<Schedule> row;
    while (row.size() < 5) row.push_back(all[random() % all.size()]);
    ASSERT_NO_FATAL_FAILURE(expect_right(row)) << "row " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks,
                         SequenceTest,
                         testing::ValuesIn(kSanitized ? std::vector{2, 3}
                                                      : std::vector{2, 3, 4, 5}));

TEST(StageLimitTest, TheStageOfAPartThatSignalsMustFitTheScratch) {
  constexpr ScratchSize kSmall = schedule::engine_scratch(6_KiB);
  const auto violations_of = [&](std::string_view algorithm, int ranks_per_host) {
    const Problem problem{.operation = Operation::kReduce,
                          .ranks = 2,
                          .ranks_per_host = ranks_per_host,
                          .count = Elements(6000),
                          .stage_limit = Elements(6000)};
    return verify_sequence(std::vector{plan::plan_all(plan::algorithm_named(algorithm), problem)},
                           kSmall);
  };
  const std::vector<Violation> found = violations_of("direct", 2);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.front().what, "stages more than the scratch can hold");
  EXPECT_TRUE(violations_of("ring", 1).empty()) << "memory of the rank";
}

// ---- with cells in banks, and a ring

struct Room {
  std::string_view name;
  ScratchSize size;
  Elements count;
};

void PrintTo(const Room& room, std::ostream* out) { *out << room.name; }

/// Elements count as bytes.
constexpr Room kRooms[] = {
    {"RingAlone", {.ring = Bytes(576), .cell = Bytes(0), .cells = 8}, kFew},
    {"RingOfThreePlaces", {.ring = Bytes(576), .cell = Bytes(0), .cells = 8}, Elements(60)},
    {"RingAndSmallCells", {.ring = Bytes(576), .cell = Bytes(8), .cells = 8}, kFew},
    {"CellsAlone", {.ring = Bytes(576), .cell = Bytes(1000), .cells = 8}, kFew},
    {"EngineWithLittle", schedule::engine_scratch(6_KiB), kFew},
    {"EngineWithMuch", schedule::engine_scratch(6_KiB), Elements(500)}};

class LongSequenceTest : public testing::TestWithParam<std::tuple<Room, int>> {};

/// Two schedules each. A third schedule could hide that the two do not wait for a place, because
/// ranks would wait for each other more often.
TEST_P(LongSequenceTest, LongSequencesOfTwoSchedulesAreCorrect) {
  constexpr int kRows = kSanitized ? 60 : 600;
  constexpr std::size_t kLength = 24;  // uses the eight cells and their banks three times
  const auto& [room, ranks] = GetParam();
  const Elements limit(schedule::Scratch(room.size).limit().value);
  std::vector<Schedule> all;
  for (const bool registered : {false, true}) {
    append_all(all,
               {.ranks = ranks,
                .ranks_per_host = ranks,
                .count = room.count,
                .registered = std::vector<bool>(static_cast<std::size_t>(ranks), registered),
                .stage_limit = limit});
  }
  EXPECT_GE(all.size(), 12u);
  std::mt19937 random(static_cast<unsigned>(ranks));
  for (int i = 0; i < kRows; ++i) {
    const Schedule& often = all[random() % all.size()];
    const Schedule& seldom = all[random() % all.size()];
    std::vector<Schedule> row;
    while (row.size() < kLength) row.push_back(random() % 4 > 0 ? often : seldom);
    ASSERT_NO_FATAL_FAILURE(expect_right(row, verify_sequence(row, room.size))) << "row " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Rooms,
                         LongSequenceTest,
                         testing::Combine(testing::ValuesIn(kRooms), testing::Values(2, 3, 4)),
                         [](const auto& test) {
                           return fmt::format("{}Of{}Ranks",
                                              std::get<Room>(test.param).name,
                                              std::get<int>(test.param));
                         });

}  // namespace
}  // namespace peal::verify
