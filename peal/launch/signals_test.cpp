#include "peal/launch/signals.h"

#include <sys/wait.h>
#include <unistd.h>

#include <initializer_list>

#include <gtest/gtest.h>

namespace peal::launch {
namespace {

/// The status, by waitpid(2), of a process that gets the signals and takes its end.
int status_after(std::initializer_list<int> signals) {
  const pid_t child = ::fork();
  if (child == 0) {
    SignalReader reader;
    for (const int signal : signals) ::raise(signal);
    ::_exit(reader.take_end());
  }
  int status = 0;
  ::waitpid(child, &status, WUNTRACED);
  if (WIFSTOPPED(status)) {
    ::kill(child, SIGKILL);
    int end = 0;
    ::waitpid(child, &end, 0);
  }
  return status;
}

TEST(SignalReaderTest, TheFirstSignalThatEndsALaunchIsTaken) {
  EXPECT_EQ(WEXITSTATUS(status_after({SIGUSR1, SIGTERM})), SIGTERM);
  const int status = status_after({SIGUSR1, SIGCONT});
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(SignalReaderTest, CtrlZStopsALauncherUnlessAnotherSignalEndsIt) {
  EXPECT_TRUE(WIFSTOPPED(status_after({SIGTSTP})));
  for (const int signal : {SIGINT, SIGTERM}) {
    const int status = status_after({signal, SIGTSTP});
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), signal);
  }
}

}  // namespace
}  // namespace peal::launch
