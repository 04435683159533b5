#include "peal/cli/say.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include <gtest/gtest.h>

#include "peal/base/testing/in_child.h"
#include "peal/launch/signals.h"
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

TEST(SayTest, ASlowReaderGetsTheWholeText) {
  Pipe pipe = make_pipe();
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(pipe.writer.get(), STDERR_FILENO);
    const launch::SignalReader signals;
    say(kLongText, signals);
    ::_exit(0);
  }
  pipe.writer.reset();
  std::string buffer(1 << 16, ' ');
  std::size_t size = 0;
  while (const auto got = ::read(pipe.reader.get(), buffer.data(), buffer.size())) {
    ASSERT_GT(got, 0);
    size += static_cast<std::size_t>(got);
  }
  EXPECT_EQ(size, kLongText.size());
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

}  // namespace
}  // namespace peal::cli
