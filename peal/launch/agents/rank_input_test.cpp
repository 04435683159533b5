#include "peal/launch/agents/rank_input.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "peal/base/testing/in_child.h"
#include "peal/system/fd.h"
#include "peal/system/pipe.h"

namespace peal::launch::agents {
namespace {

TEST(RankInputTest, TheNextBytesAreReadWhenTheLastOnesAreTaken) {
  Pipe pipe = make_pipe();
  InputSource source(pipe.reader.get());
  EXPECT_EQ(source.try_next(), std::nullopt);
  ASSERT_EQ(::write(pipe.writer.get(), "one", 3), 3);
  EXPECT_EQ(source.try_next(), "one");
  ASSERT_EQ(::write(pipe.writer.get(), "two", 3), 3);
  EXPECT_EQ(source.waits_for(), -1);
  EXPECT_EQ(source.try_next(), std::nullopt);
  source.take_answer();
  EXPECT_EQ(source.try_next(), "two");
}

TEST(RankInputTest, TheEndIsReadOnce) {
  Pipe pipe = make_pipe();
  pipe.writer.reset();
  InputSource source(pipe.reader.get());
  EXPECT_EQ(source.try_next(), "");
  source.take_answer();
  EXPECT_EQ(source.try_next(), std::nullopt);
  InputSource closed(1'000'000);  // as of a program without a stdin
  EXPECT_EQ(closed.try_next(), "");
}

/// Another process may take the bytes that poll has reported.
TEST(RankInputTest, APipeIsReadWithoutBlockingAndKeepsItsFlags) {
  const Pipe pipe = make_pipe();
  const InputSource source(pipe.reader.get());
  EXPECT_NE(::fcntl(source.waits_for(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_EQ(::fcntl(pipe.reader.get(), F_GETFL) & O_NONBLOCK, 0);
}

TEST(RankInputTest, ASocketIsReadWithoutBlocking) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const Fd reader(ends[0]);
  Fd writer(ends[1]);
  InputSource source(reader.get());
  EXPECT_EQ(source.try_next(), std::nullopt);
  ASSERT_EQ(::write(writer.get(), "one", 3), 3);
  EXPECT_EQ(source.try_next(), "one");
  source.take_answer();
  writer.reset();
  EXPECT_EQ(source.try_next(), "");
}

/// A new terminal. Returns its end for the user, and its end for programs.
std::pair<Fd, Fd> make_terminal() {
  Fd user(::posix_openpt(O_RDWR | O_NOCTTY));
  if (::grantpt(user.get()) != 0 || ::unlockpt(user.get()) != 0) return {};
  return {std::move(user), Fd(::open(::ptsname(user.get()), O_RDWR))};
}

bool has_input(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return fd >= 0 && ::poll(&entry, 1, 100'000) == 1;
}

/// A process in a group of its own, like another job of the shell.
pid_t start_other_job() {
  const pid_t other = ::fork();
  if (other == 0) {
    ::alarm(120);
    for (;;) ::pause();
  }
  ::setpgid(other, other);
  return other;
}

TEST(RankInputTest, ATerminalIsReadOnlyInTheForeground) {
  EXPECT_EQ(in_child([] {
              ::setsid();  // the first terminal that it opens is the terminal of its session
              ::signal(SIGHUP, SIG_IGN);   // comes when the test closes the terminal
              ::signal(SIGTTOU, SIG_IGN);  // comes when tcsetpgrp is called in the background
              const auto [user, program] = make_terminal();
              InputSource source(program.get());
              if (::write(user.get(), "text\n", 5) != 5 || !has_input(source.waits_for())) return 1;

              const pid_t other = start_other_job();
              if (::tcsetpgrp(program.get(), other) != 0) return 2;
              const bool is_read = source.waits_for() != -1 || source.try_next().has_value();
              ::kill(other, SIGKILL);
              if (is_read) return 3;

              if (::tcsetpgrp(program.get(), ::getpgrp()) != 0) return 4;
              return source.try_next() == "text\n" ? 0 : 5;
            }),
            0);
}

TEST(RankInputTest, TheAgentAnswersWhenTheRankHasRoomForMore) {
  InputSink sink;
  const Fd reader = sink.open();
  const std::string all(200'000, 'x');  // more than the pipe holds
  sink.take(all);
  EXPECT_EQ(sink.write_some(), std::nullopt);
  EXPECT_GE(sink.waits_for(), 0);
  std::string got;
  std::optional<FrameKind> answer;
  while (!answer) {
    std::string bytes(1 << 16, '\0');
    bytes.resize(static_cast<std::size_t>(::read(reader.get(), bytes.data(), bytes.size())));
    got += bytes;
    answer = sink.write_some();
  }
  EXPECT_EQ(answer, FrameKind::kInputTaken);
  sink.take("");  // the end
  EXPECT_EQ(sink.write_some(), std::nullopt);
  char c = 0;
  ssize_t last = 0;
  while ((last = ::read(reader.get(), &c, 1)) == 1) got += c;
  EXPECT_EQ(last, 0);
  EXPECT_EQ(got, all);
}

TEST(RankInputTest, ARankThatReadsNoMoreIsReported) {
  ::signal(SIGPIPE, SIG_IGN);
  InputSink sink;
  sink.open();
  sink.take("not read");
  EXPECT_EQ(sink.write_some(), FrameKind::kInputClosed);
  EXPECT_EQ(sink.write_some(), std::nullopt);
  ::signal(SIGPIPE, SIG_DFL);
}

}  // namespace
}  // namespace peal::launch::agents
