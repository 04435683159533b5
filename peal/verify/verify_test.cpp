// Correct schedules are accepted, alone and in sequences. Any text is checked in bounded time.
#include "peal/verify/verify.h"

#include <iterator>
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/schedule/text.h"
#include "peal/verify/testing/schedules.h"
#include "peal/verify/testing/wrong.h"

namespace peal::verify {
namespace {

using schedule::parse_schedule;
using schedule::Schedule;
using testing::IsEmpty;

TEST(VerifyTest, AcceptsCorrectSchedules) {
  for (const auto& [name, text] : kRight) EXPECT_THAT(wrong_with(text), IsEmpty()) << name;
}

TEST(VerifyTest, AcceptsSequencesOfCorrectSchedules) {
  const std::string_view of_two[] = {kDirect, kStaged, kPushed};
  for (const std::string_view first : of_two) {
    for (const std::string_view second : of_two) {
      const Schedule row[] = {parse_schedule(first), parse_schedule(second), parse_schedule(first)};
      EXPECT_THAT(words(verify_sequence(row)), IsEmpty()) << first << second;
    }
  }
  const Schedule row[] = {parse_schedule(kReduceToRoot),
                          parse_schedule(kStagedBroadcast),
                          parse_schedule(kBarrier),
                          parse_schedule(kStagedBroadcast),
                          parse_schedule(kStagedBroadcast)};
  EXPECT_THAT(words(verify_sequence(row)), IsEmpty());
}

TEST(VerifyTest, AcceptsAnEmptySequence) { EXPECT_THAT(verify_sequence({}), IsEmpty()); }

TEST(VerifyTest, AnExpressionThatDoublesWithEachStepIsCheckedInBoundedTime) {
  std::string text = "all_reduce ranks=1 count=4\nrank 0\nmove input[0]@0 -> output[0]@0 x4\n";
  for (int i = 0; i < 200; ++i) {
    text += "move partial output[0]@0, partial output[0]@0 -> output[0]@0 x4\n";
  }
  EXPECT_THAT(wrong_with(text + "move partial output[0]@0 -> output[0]@0 x4 finish\n"),
              has("rank 0, step 202", "ends with finish(reduce(reduce("));
}

TEST(VerifyTest, SchedulesOfRandomNumbersAreAcceptedOrRejected) {
  std::mt19937 random(1);
  const auto below = [&](std::size_t end) { return random() % end; };
  int accepted = 0;
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text(kRight[below(std::size(kRight))].second);
    for (std::size_t changes = 1 + below(4); changes > 0;) {
      char& letter = text[below(text.size())];
      if (letter < '0' || letter > '9') continue;
      letter = static_cast<char>('0' + below(10));
      --changes;
    }
    try {
      ++(wrong_with(text).empty() ? accepted : refused);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage) << text;
    }
  }
  EXPECT_GT(accepted, 10);
  EXPECT_GT(refused, 1000);
}

TEST(VerifyTest, LimitsTheNumberOfViolations) {
  std::string text = "barrier ranks=1\nrank 0\n";
  for (int i = 0; i < 1000; ++i) text += "move input[0]@0 -> output[0]@0 x1\n";
  EXPECT_LE(wrong_with(text).size(), 20u);
}

}  // namespace
}  // namespace peal::verify
