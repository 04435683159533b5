#include "peal/launch/error_text.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal::launch {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using Lines = std::vector<std::string>;

Lines traceback(const std::string& error, int line = 7) {
  return {"Traceback (most recent call last):",
          fmt::format("  File \"/job/train.py\", line {}, in step", line),
          "    raise RuntimeError(text)",
          error};
}

ProcessEnd failed_with(Rank rank, Lines lines) {
  return {.rank = rank, .status = 1 << 8, .last_lines = std::move(lines)};
}

Lines after(const std::string& line, const Lines& lines) {
  Lines all = {line};
  all.insert(all.end(), lines.begin(), lines.end());
  return all;
}

TEST(ErrorTextTest, TheErrorIsTheLastTraceback) {
  Lines lines = traceback("RuntimeError: handled");
  const Lines last = traceback("RuntimeError: not handled");
  lines.emplace_back("step 18");
  lines.insert(lines.end(), last.begin(), last.end());
  EXPECT_EQ(error_in(lines), last);
  EXPECT_EQ(error_in(after("step 17 loss 0.3", last)), last);
}

TEST(ErrorTextTest, TheCauseOfAnExceptionBelongsToTheError) {
  for (const char* sentence :
       {"The above exception was the direct cause of the following exception:",
        "During handling of the above exception, another exception occurred:"}) {
    Lines lines = traceback("FileNotFoundError: shard");
    const Lines last = traceback("RuntimeError: no data");
    lines.insert(lines.end(), {"", sentence, ""});
    lines.insert(lines.end(), last.begin(), last.end());
    EXPECT_EQ(error_in(after("step 17", lines)), lines);
  }
}

TEST(ErrorTextTest, OfALongTracebackTheLinesThatRemainAreTheError) {
  const Lines all = traceback("RuntimeError: deep");
  const Lines rest = {all.begin() + 1, all.end()};
  EXPECT_EQ(error_in(rest), rest);
}

TEST(ErrorTextTest, AnUncaughtExceptionIsAnError) {
  const Lines error = {"terminate called after throwing an instance of 'std::runtime_error'",
                       "  what():  no luck"};
  EXPECT_EQ(error_in(after("step 17", error)), error);
}

TEST(ErrorTextTest, OtherLinesAreNotAnError) {
  EXPECT_THAT(error_in(Lines{"step 17", "RuntimeError of the last run: fixed"}), IsEmpty());
  EXPECT_THAT(error_in(Lines{}), IsEmpty());
}

TEST(ErrorTextTest, ErrorsThatDifferOnlyInWordsWithDigitsAreTheSame) {
  const std::vector<std::pair<std::string, std::string>> same = {
      {"[rank0]: ValueError: bad", "[rank12]: ValueError: bad"},
      {"mat1 and mat2 cannot be multiplied (3x7 and 8x4)",
       "mat1 and mat2 cannot be multiplied (11x7 and 8x4)"},
      {"<Batch object at 0x7f3a90bc>", "<Batch object at 0x7ffd1234a0>"},
      {"job 1f0c2a-77 refused at 1764.25", "job abc9ff-12 refused at 2.5"},
      {"[127.0.0.1]:20000: Connection refused", "[10.1.2.33]:41234: Connection refused"},
  };
  for (const auto& [a, b] : same) {
    EXPECT_TRUE(is_same_error(traceback(a), traceback(b))) << a << "\n" << b;
  }
}

TEST(ErrorTextTest, ErrorsWithOtherWordsOrAtOtherPlacesAreDifferent) {
  EXPECT_FALSE(is_same_error(traceback("KeyError: 'layer1'"), traceback("KeyError: 'head'")));
  EXPECT_FALSE(is_same_error(traceback("host a is away"), traceback("host b is away")));
  EXPECT_FALSE(is_same_error(traceback("ValueError: bad", 7), traceback("ValueError: bad", 8)));
  EXPECT_FALSE(is_same_error(traceback("a"), after("a", traceback("a"))));
}

TEST(ErrorTextTest, APrefixOfTorchDoesNotHideThePlaceInTheCode) {
  const Lines at_7 = {"[rank0]:   File \"/job/train.py\", line 7, in step"};
  const Lines also_at_7 = {"[rank1]:   File \"/job/train.py\", line 7, in step"};
  const Lines at_8 = {"[rank1]:   File \"/job/train.py\", line 8, in step"};
  EXPECT_TRUE(is_same_error(at_7, also_at_7));
  EXPECT_FALSE(is_same_error(at_7, at_8));
}

TEST(ErrorTextTest, RanksWithTheSameErrorAreNamedTogether) {
  std::vector<ProcessEnd> ends;
  for (const Rank rank : {2, 0, 1, 3, 5}) {
    ends.push_back(failed_with(rank, traceback(fmt::format("ValueError: bad rank {}", rank))));
  }
  EXPECT_EQ(describe_errors(ends.front(), ends),
            "peal: ranks 0 to 3 and 5 ended with the same error; the last lines of rank 2:\n"
            "  | Traceback (most recent call last):\n"
            "  |   File \"/job/train.py\", line 7, in step\n"
            "  |     raise RuntimeError(text)\n"
            "  | ValueError: bad rank 2\n");
}

TEST(ErrorTextTest, OtherErrorsFollowTheMainFailure) {
  const std::vector<ProcessEnd> ends = {failed_with(1, {"Segmentation fault"}),
                                        failed_with(0, traceback("ValueError: bad")),
                                        failed_with(2, traceback("ValueError: bad")),
                                        failed_with(3, {"step 17"})};
  EXPECT_EQ(describe_errors(ends.front(), ends),
            "peal: the last lines of rank 1:\n"
            "  | Segmentation fault\n"
            "peal: ranks 0 and 2 ended with this error:\n"
            "  | Traceback (most recent call last):\n"
            "  |   File \"/job/train.py\", line 7, in step\n"
            "  |     raise RuntimeError(text)\n"
            "  | ValueError: bad\n");
}

TEST(ErrorTextTest, ManyErrorsAreABoundedNumberOfLines) {
  std::vector<ProcessEnd> ends;
  for (Rank rank = 0; rank < 20; ++rank) {
    const std::string name(static_cast<std::size_t>(rank + 1), 'x');
    Lines lines = traceback("KeyError: " + name);
    lines.insert(lines.end() - 1, 10, "    more code");
    ends.push_back(failed_with(rank, lines));
  }
  const std::string text = describe_errors(ends.front(), ends);
  EXPECT_THAT(text, HasSubstr("  | KeyError: xxxx\npeal: 16 other errors are not shown\n"));
  EXPECT_EQ(std::ranges::count(text, '\n'), 1 + 14 + 3 * (1 + 8) + 1);
}

TEST(ErrorTextTest, ARankThatWroteNothingIsNamed) {
  const ProcessEnd silent = failed_with(3, {});
  EXPECT_EQ(describe_errors(silent, {&silent, 1}), "peal: rank 3 wrote nothing\n");
}

}  // namespace
}  // namespace peal::launch
