#include "peal/launch/screen.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/system/fd.h"

namespace peal::launch {
namespace {

using testing::HasSubstr;

/// A pipe whose reading end does not block, and a Screen that writes both channels into it.
class ScreenTest : public testing::Test {
 protected:
  ScreenTest() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
    reader_ = Fd(ends[0]);
    writer_ = Fd(ends[1]);
    ::fcntl(reader_.get(), F_SETFL, O_NONBLOCK);
  }

  Target target(Target::Kind kind) const { return {writer_.get(), kind}; }
  Screen file() const { return {target(Target::Kind::kFile), target(Target::Kind::kFile)}; }
  Screen terminal() const {
    return {target(Target::Kind::kTerminal), target(Target::Kind::kTerminal)};
  }

  /// Reads everything from the pipe.
  std::string read() const {
    std::string text;
    std::array<char, 1 << 16> buffer;
    for (ssize_t got = 0; (got = ::read(reader_.get(), buffer.data(), buffer.size())) > 0;) {
      text.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return text;
  }

  Fd reader_;
  Fd writer_;
};

TEST_F(ScreenTest, LinesOfBothChannelsComeInOrder) {
  Screen screen = file();
  screen.line(Channel::kOut, "[0] ", "one");
  screen.line(Channel::kErr, "[1] ", "two");
  screen.line(Channel::kOut, "", "three");
  EXPECT_EQ(screen.waits_for(), writer_.get());
  screen.write_some();
  EXPECT_EQ(read(), "[0] one\n[1] two\nthree\n");
  EXPECT_TRUE(screen.is_empty());
  EXPECT_EQ(screen.waits_for(), -1);
}

TEST_F(ScreenTest, WritingPausesWhileTheReaderIsSlowAndContinuesAtTheSamePlace) {
  Screen screen = file();
  const std::string long_line(300'000, 'x');  // more than a pipe holds
  std::string expected;
  int lines = 0;
  while (!screen.is_full()) {
    screen.line(lines % 2 == 0 ? Channel::kOut : Channel::kErr, "", long_line);
    expected += long_line + "\n";
    ++lines;
  }
  EXPECT_GE(lines, 3);
  std::string got;
  for (int round = 0; round < 1000 && !screen.is_empty(); ++round) {
    screen.write_some();
    got += read();
  }
  EXPECT_TRUE(got == expected);
  EXPECT_FALSE(screen.is_full());
}

TEST_F(ScreenTest, AClosedReaderIsNoticedAndItsTextDropped) {
  sigset_t pipe, before;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  ::sigprocmask(SIG_BLOCK, &pipe, &before);
  Screen screen = file();
  reader_.reset();
  screen.line(Channel::kOut, "", "nobody reads this");
  screen.write_some();
  EXPECT_TRUE(screen.is_closed(Channel::kOut));
  EXPECT_FALSE(screen.is_closed(Channel::kErr));
  screen.line(Channel::kOut, "", "nor this");
  EXPECT_TRUE(screen.is_empty());
  const timespec none{};
  EXPECT_EQ(::sigtimedwait(&pipe, nullptr, &none), SIGPIPE);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
}

TEST_F(ScreenTest, TextLostOnAFullDiskIsCounted) {
  const Fd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  Screen screen({full.get(), Target::Kind::kFile}, target(Target::Kind::kFile));
  screen.line(Channel::kOut, "", "lost");
  screen.line(Channel::kErr, "", "kept");
  screen.write_some();
  EXPECT_TRUE(screen.is_empty());
  EXPECT_FALSE(screen.is_closed(Channel::kOut));
  EXPECT_EQ(read(), "kept\n");
  EXPECT_EQ(screen.lost(Channel::kOut),
            (LostOutput{.where = "standard output", .error = ENOSPC, .bytes = 5}));
  EXPECT_EQ(screen.lost(Channel::kErr).error, 0);
}

TEST_F(ScreenTest, OnATerminalALineReplacesThePreview) {
  Screen screen = terminal();
  screen.preview(Channel::kOut, "[0] ", "10%");
  screen.preview(Channel::kOut, "[0] ", "10%");  // the same preview is not drawn again
  screen.preview(Channel::kOut, "[0] ", "20%");
  screen.line(Channel::kErr, "[1] ", "a line");
  screen.write_some();
  EXPECT_EQ(read(), "[0] 10%\r\x1b[K[0] 20%\r\x1b[K[1] a line\n");
}

TEST_F(ScreenTest, WithoutATerminalThereAreNoPreviews) {
  Screen screen = file();
  screen.preview(Channel::kOut, "[0] ", "10%");
  EXPECT_TRUE(screen.is_empty());
  EXPECT_FALSE(screen.is_terminal(Channel::kOut));
}

}  // namespace
}  // namespace peal::launch
