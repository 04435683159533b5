#include "peal/schedule/text.h"

#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/schedule/problem.h"

namespace peal::schedule {
namespace {

constexpr std::string_view kExample =
    R"(all_reduce ranks=2 per_host=2 root=1 count=8 stage_limit=64 in_place registered
rank 0 stage=8 span=2
  signal 1
  wait [1] 1
  move input[0:2]@0 -> output[0:2]@0 x4 finish
  move partial wire[1]@0, input[0]@8, stage[0:8:2]@-3 -> stage[0]@8, output[1]@0 x4
rank 1
)";

/// Draws random schedules, including some that no planner would make.
class Drawing {
 public:
  explicit Drawing(unsigned seed) : random_(seed) {}

  Schedule schedule() {
    Schedule schedule;
    schedule.problem = problem();
    const auto parts = number(0, 3);
    for (std::int64_t i = 0; i < parts; ++i) schedule.parts.push_back(part());
    return schedule;
  }

 private:
  std::int64_t number(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
  }
  bool coin() { return number(0, 1) == 1; }
  Elements elements() {
    return Elements(number(0, 4) == 0 ? number(INT64_MIN, INT64_MAX) : number(0, 9));
  }

  Problem problem() {
    Problem problem{.operation = kAllCollectives[static_cast<std::size_t>(number(0, 8))],
                    .ranks = static_cast<int>(number(-1, 9)),
                    .ranks_per_host = static_cast<int>(number(-1, 9)),
                    .root = static_cast<int>(number(INT32_MIN, INT32_MAX)),
                    .count = elements(),
                    .in_place = coin(),
                    .stage_limit = elements()};
    if (problem.ranks > 0 && coin()) {
      problem.registered = all_registered(problem.ranks);
      for (int rank = 1; rank < problem.ranks; ++rank) {
        problem.registered[static_cast<std::size_t>(rank)] = coin();
      }
    }
    if (problem.ranks > 0 && coin()) {
      problem.in_place_of.assign(static_cast<std::size_t>(problem.ranks), false);
      problem.in_place_of[static_cast<std::size_t>(number(0, problem.ranks - 1))] = true;
    }
    const auto counts = number(0, 3);
    for (std::int64_t i = 0; i < counts; ++i) problem.counts.push_back(elements());
    return problem;
  }

  Part part() {
    Part part{.stage = elements(), .span = number(-1, 3)};
    const auto steps = number(0, 5);
    for (std::int64_t i = 0; i < steps; ++i) part.steps.push_back(step());
    return part;
  }

  Step step() {
    const auto kind = number(0, 2);
    if (kind == 0) return Signal{number(INT64_MIN, INT64_MAX)};
    if (kind == 1) return Wait{ranks(), number(-3, 3)};
    Move move{.count = elements(), .finish = coin() ? Finish::kYes : Finish::kNo};
    const auto from = number(1, 3);
    const auto to = number(1, 2);
    for (std::int64_t i = 0; i < from; ++i) move.from.push_back(slice());
    for (std::int64_t i = 0; i < to; ++i) move.to.push_back(slice());
    return move;
  }

  Slice slice() {
    return {static_cast<Space>(number(0, 3)),
            ranks(),
            elements(),
            coin() ? Holds::kPartial : Holds::kContribution};
  }

  Ranks ranks() {
    const int stride = static_cast<int>(coin() ? number(1, 3) : number(-3, -1));
    return {static_cast<Rank>(number(-2, 9)), static_cast<int>(number(0, 3)), stride};
  }

  std::mt19937 random_;
};

std::string error_of(std::string_view text) {
  try {
    parse_schedule(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return error.what();
  }
  return "accepted";
}

TEST(TextTest, WritesTheTextThatWasParsed) {
  EXPECT_EQ(to_text(parse_schedule(kExample)), kExample);
}

TEST(TextTest, ParsesEveryField) {
  const Schedule schedule = parse_schedule(kExample);
  EXPECT_EQ(schedule.problem,
            (Problem{.operation = Operation::kAllReduce,
                     .ranks = 2,
                     .ranks_per_host = 2,
                     .root = 1,
                     .count = Elements(8),
                     .in_place = true,
                     .registered = all_registered(2),
                     .stage_limit = Elements(64)}));
  ASSERT_EQ(schedule.parts.size(), 2u);
  const Part& part = schedule.parts[0];
  EXPECT_EQ(part.stage, Elements(8));
  EXPECT_EQ(part.span, 2);
  ASSERT_EQ(part.steps.size(), 4u);
  EXPECT_EQ(part.steps[0], Step(Signal{1}));
  EXPECT_EQ(part.steps[1], Step(Wait{{.first = 1}, 1}));
  const Move direct{.from = {{Space::kInput, {.first = 0, .count = 2}, Elements(0)}},
                    .to = {{Space::kOutput, {.first = 0, .count = 2}, Elements(0)}},
                    .count = Elements(4),
                    .finish = Finish::kYes};
  EXPECT_EQ(part.steps[2], Step(direct));
  const Move several{.from = {{Space::kWire, {.first = 1}, Elements(0), Holds::kPartial},
                              {Space::kInput, {.first = 0}, Elements(8)},
                              {Space::kStage, {.first = 0, .count = 4, .stride = 2}, Elements(-3)}},
                     .to = {{Space::kStage, {.first = 0}, Elements(8)},
                            {Space::kOutput, {.first = 1}, Elements(0)}},
                     .count = Elements(4)};
  EXPECT_EQ(part.steps[3], Step(several));
  EXPECT_EQ(schedule.parts[1], Part{});
}

TEST(TextTest, RandomSchedulesSurviveWritingAndParsing) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    const Schedule schedule = Drawing(seed).schedule();
    EXPECT_EQ(parse_schedule(to_text(schedule)), schedule) << "seed " << seed;
  }
}

TEST(TextTest, IgnoresCommentsBlankLinesAndSpaces) {
  const Schedule plain = parse_schedule("barrier ranks=1 per_host=2\nrank 0 span=1\nsignal 1\n");
  EXPECT_EQ(parse_schedule("\n# nothing\n barrier  ranks=1\tper_host=2 # two\r\n\n"
                           "rank 0   span=1\n\tsignal 1"),
            plain);
}

TEST(TextTest, ErrorsNameTheLineAndTheExpectedText) {
  using testing::HasSubstr;
  EXPECT_THAT(error_of(""), HasSubstr("expected a problem"));
  EXPECT_THAT(error_of("all_red ranks=2"),
              HasSubstr("line 1 of the schedule: expected an operation"));
  EXPECT_THAT(error_of("send ranks=2"), HasSubstr("expected an operation"));
  EXPECT_THAT(error_of("barrier size=2"), HasSubstr("a field of the problem"));
  EXPECT_THAT(error_of("barrier\n\nsignal 1"),
              HasSubstr("line 3 of the schedule: expected rank 0"));
  EXPECT_THAT(error_of("barrier\nrank 1"), HasSubstr("rank 0 (ranks come in order)"));
  EXPECT_THAT(error_of("barrier\nrank 0 size=1"), HasSubstr("stage= or span="));
  EXPECT_THAT(error_of("barrier\nrank 0\njump 1"), HasSubstr("rank, move, signal or wait"));
  EXPECT_THAT(error_of("barrier\nrank 0\nsignal one"), HasSubstr("a number, found \"one\""));
  EXPECT_THAT(error_of("barrier\nrank 0\nsignal 1 2"), HasSubstr("nothing more"));
}

TEST(TextTest, RejectsMalformedSteps) {
  const auto step_error = [](std::string_view step) {
    return error_of("barrier\nrank 0\n" + std::string(step));
  };
  using testing::HasSubstr;
  EXPECT_THAT(step_error("wait 0 1"), HasSubstr("\"[\""));
  EXPECT_THAT(step_error("wait [0:4:0] 1"), HasSubstr("an end and a stride"));
  EXPECT_THAT(step_error("wait [0:5:2] 1"), HasSubstr("an end and a stride"));
  EXPECT_THAT(step_error("wait [4:2] 1"), HasSubstr("an end and a stride"));
  EXPECT_THAT(step_error("wait [-2147483648:2147483647] 1"), HasSubstr("an end and a stride"));
  EXPECT_THAT(step_error("move input[0]@0 x4"), HasSubstr("\"->\""));
  EXPECT_THAT(step_error("move cell[0]@0 -> input[0]@0 x4"),
              HasSubstr("input, output, stage or wire"));
  EXPECT_THAT(step_error("move input[0]@0 -> stage[0]@0, stage[0]@1, stage[0]@2 x4"),
              HasSubstr("at most 2 slices"));
}

TEST(TextTest, ParsesTheRegisteredRanks) {
  const auto registered = [](std::string_view text) {
    return parse_schedule("all_reduce " + std::string(text)).problem.registered;
  };
  EXPECT_THAT(registered("ranks=3"), testing::IsEmpty());
  EXPECT_THAT(registered("ranks=3 registered"), testing::ElementsAre(true, true, true));
  EXPECT_THAT(registered("ranks=3 registered=0,2"), testing::ElementsAre(true, false, true));
}

TEST(TextTest, RejectsRegisteredRanksOutsideTheGroup) {
  using testing::HasSubstr;
  EXPECT_THAT(error_of("barrier ranks=3 registered=2,3"), HasSubstr("ranks of the group"));
  EXPECT_THAT(error_of("barrier ranks=3 registered=1,1"), HasSubstr("in ascending order"));
  EXPECT_THAT(error_of("barrier ranks=0 registered"), HasSubstr("ranks=N before registered"));
  EXPECT_THAT(error_of("barrier ranks=2000000000 registered"),
              HasSubstr("ranks=N before registered"));
}

TEST(TextTest, RejectsNumbersThatOverflow) {
  using testing::HasSubstr;
  EXPECT_THAT(error_of("barrier ranks=2147483648"), HasSubstr("a smaller number"));
  EXPECT_THAT(error_of("broadcast count=9223372036854775808"), HasSubstr("a smaller number"));
  EXPECT_THAT(error_of("barrier\nrank 18446744073709551616"), HasSubstr("a smaller number"));
}

TEST(TextTest, TruncatedTextIsParsedOrRejectedWithALineNumber) {
  for (std::size_t size = 0; size < kExample.size(); ++size) {
    const std::string error = error_of(kExample.substr(0, size));
    EXPECT_THAT(error, testing::AnyOf("accepted", testing::HasSubstr("line "))) << size;
  }
}

}  // namespace
}  // namespace peal::schedule
