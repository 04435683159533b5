#include "peal/base/stack_frames.h"

#include <gtest/gtest.h>

namespace peal {
namespace {

constexpr const char* kTitle =
    "Exception raised from meta at /pytorch/aten/Linear.cpp:98 (most recent call first):\n";

TEST(StackFramesTest, ATextWithoutFramesStaysUnchanged) {
  for (const char* text :
       {"", "\n", "no luck", "no luck\n\n", "a frame #3: is\nException raised from"}) {
    EXPECT_EQ(without_stack_frames(text), text);
  }
}

TEST(StackFramesTest, TheFramesAndTheirTitleAreRemoved) {
  EXPECT_EQ(
      without_stack_frames(std::string("mat1 and mat2 (4x5 and 6x8)\n") + kTitle +
                           "frame #0: c10::Error::Error(std::string) + 0x9d (0x7f in c10.so)\n"
                           "frame #1: <unknown function> + 0x2a (0x7f in train)\n"),
      "mat1 and mat2 (4x5 and 6x8)");
}

TEST(StackFramesTest, LinesThatBeginLikeAFrameStayWithoutATitleAbove) {
  for (const char* text : {"frame #0: main", "frame #12 cannot be decoded\nframe #13: neither\n"}) {
    EXPECT_EQ(without_stack_frames(text), text);
  }
}

TEST(StackFramesTest, ATitleAfterTheFramesBeginsTheNextStack) {
  const std::string stack = std::string(kTitle) + "frame #0: f()\n";
  EXPECT_EQ(without_stack_frames(stack + stack + "no luck\n" + stack), "no luck");
}

TEST(StackFramesTest, LinesBeforeAndAfterTheFramesStay) {
  EXPECT_EQ(without_stack_frames(std::string("no luck\n  in row 9\n\n") + kTitle +
                                 "frame #0: f()\nwhile step 7 ran\nframe #1: dark\n"),
            "no luck\n  in row 9\n\nwhile step 7 ran\nframe #1: dark");
}

TEST(StackFramesTest, ALineOfTheProgramThatOnlyBeginsLikeATitleStays) {
  const char* const text = "Exception raised from row 9\nframe #0: f()";
  EXPECT_EQ(without_stack_frames(text), text);
}

}  // namespace
}  // namespace peal
