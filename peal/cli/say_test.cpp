#include "peal/cli/say.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "peal/base/clock.h"
#include "peal/base/testing/in_child.h"
#include "peal/launch/signals.h"
#include "peal/launch/supervisor.h"
#include "peal/system/pipe.h"

namespace peal::cli {
namespace {

/// More than a pipe holds.
const std::string kLongText(4 << 20, 'x');

TEST(SayTest, ASignalEndsTheAttemptToWriteToAStuckReader) {
  EXPECT_TRUE(holds_in_child([] {
    const Pipe pipe = make_pipe();  // that nobody reads
    ::dup2(pipe.writer.get(), STDERR_FILENO);
    launch::SignalReader signals;
    ::raise(SIGTERM);
    say(kLongText, signals);
    return signals.take_end() == SIGTERM;
  }));
}

bool is_full(const Fd& writer) {
  pollfd entry{writer.get(), POLLOUT, 0};
  return ::poll(&entry, 1, 0) == 0;
}

struct Received {
  std::size_t size = 0;
  Timeout time{};  // from when the pipe was full
};

/// Receives kLongText from a child process, by a pipe. When the pipe is full, the reader first
/// waits for `pause`. `pending`: the signal that the child has not read; 0: none.
Received receive(Timeout pause, int pending) {
  Pipe pipe = make_pipe();
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(pipe.writer.get(), STDERR_FILENO);
    const launch::SignalReader signals;
    if (pending != 0) ::raise(pending);
    say(kLongText, signals);
    ::_exit(0);
  }
  const Deadline to_fill = Deadline::after(std::chrono::minutes(1));
  while (!is_full(pipe.writer) && !to_fill.passed()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const TimePoint begin = Clock::now();
  pipe.writer.reset();
  std::this_thread::sleep_for(pause);
  std::string buffer(1 << 16, ' ');
  Received received;
  while (const auto got = ::read(pipe.reader.get(), buffer.data(), buffer.size())) {
    EXPECT_GT(got, 0);
    if (got < 0) break;
    received.size += static_cast<std::size_t>(got);
  }
  received.time = std::chrono::duration_cast<Timeout>(Clock::now() - begin);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  return received;
}

TEST(SayTest, ASlowReaderGetsTheWholeText) {
  const Timeout pause = 3 * launch::kLastOutput;
  EXPECT_EQ(receive(pause, 0).size, kLongText.size());
}

TEST(SayTest, AReaderThatIsNotStuckGetsTheWholeTextWhileASignalIsPending) {
  const Received received = receive(launch::kLastOutput / 10, SIGCONT);
  // On a busy machine, this reader may be as slow as a stuck one.
  EXPECT_TRUE(received.size == kLongText.size() || received.time >= launch::kLastOutput)
      << received.size;
}

}  // namespace
}  // namespace peal::cli
