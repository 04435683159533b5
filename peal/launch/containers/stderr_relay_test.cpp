#include "peal/launch/containers/stderr_relay.h"

#include <unistd.h>

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace peal::launch::containers {
namespace {

void write(const StderrRelay& relay, std::string_view text) {
  ASSERT_EQ(::write(relay.writer(), text.data(), text.size()), std::ssize(text));
}

TEST(StderrRelay, TheBytesArePassedOnAndTheLastLineWithTextIsKept) {
  testing::internal::CaptureStderr();
  StderrRelay relay;
  relay.start();
  write(relay, "first\nsec");
  write(relay, "ond\n\n");
  relay.finish();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "first\nsecond\n\n");
  EXPECT_EQ(relay.last_line(), "second");
}

TEST(StderrRelay, ALineWithoutANewlineIsTheLastOne) {
  testing::internal::CaptureStderr();
  StderrRelay relay;
  relay.start();
  write(relay, "first\nsecond");
  relay.finish();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "first\nsecond");
  EXPECT_EQ(relay.last_line(), "second");
}

TEST(StderrRelay, TheRelayEndsAlthoughAnotherProcessHasTheWriter) {
  testing::internal::CaptureStderr();
  StderrRelay relay;
  const int other = ::dup(relay.writer());
  relay.start();
  write(relay, "text\n");
  relay.finish();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "text\n");
  ::close(other);
}

TEST(StderrRelay, OnlyTheBeginningOfALongLineIsKept) {
  testing::internal::CaptureStderr();
  StderrRelay relay;
  relay.start();
  write(relay, "ab" + std::string(5000, 'c') + "\n");
  relay.finish();
  EXPECT_EQ(testing::internal::GetCapturedStderr().size(), 5003U);
  EXPECT_EQ(relay.last_line(), "ab" + std::string(998, 'c'));
}

}  // namespace
}  // namespace peal::launch::containers
