// Runs the inside of the guard in the test's process, with its orders written beforehand.
#include "peal/launch/guard_process.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/launch/process_tree.h"
#include "peal/launch/testing/shell_rank.h"

namespace peal::launch {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using testing::ElementsAre;
using Kind = GuardEvent::Kind;

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) throw std::runtime_error("pipe2");
    reader = Fd(ends[0]);
    writer = Fd(ends[1]);
  }
  Fd reader;
  Fd writer;
};

class GuardProcessTest : public testing::Test {
 protected:
  GuardProcessTest() {
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    ::sigprocmask(SIG_BLOCK, &child, &duty_.mask);
    null_ = Fd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  }
  ~GuardProcessTest() override { ::sigprocmask(SIG_SETMASK, &duty_.mask, nullptr); }

  void order(const GuardOrder& order) const {
    ASSERT_EQ(::write(orders_.writer.get(), &order, sizeof order), ssize_t{sizeof order});
  }
  void lose_launcher() { orders_.writer.reset(); }

  /// Runs the guard to its end and returns its events.
  std::vector<GuardEvent> run(std::vector<RankCommand> ranks) {
    duty_.ranks = std::move(ranks);
    duty_.outputs.clear();  // closed by an earlier run
    for (std::size_t i = 0; i < 2 * duty_.ranks.size(); ++i) {
      duty_.outputs.push_back(::fcntl(null_.get(), F_DUPFD_CLOEXEC, 3));
    }
    duty_.orders = orders_.reader.get();
    duty_.events = events_.writer.get();
    GuardProcess(duty_).run();
    std::vector<GuardEvent> events;
    GuardEvent event;
    while (::read(events_.reader.get(), &event, sizeof event) == sizeof event) {
      events.push_back(event);
    }
    EXPECT_THAT(descendants_of(::getpid()), ElementsAre());
    return events;
  }

  /// The wait statuses of the ranks, in the order in which they ended.
  static std::vector<int> statuses(const std::vector<GuardEvent>& events) {
    std::vector<int> found;
    for (const GuardEvent& event : events) {
      if (event.kind == Kind::kEnded) found.push_back(event.value);
    }
    return found;
  }

  OrphanAdoption adoption_;
  GuardDuty duty_{.grace = minutes(1)};
  Pipe orders_;
  Pipe events_;
  Fd null_;
};

TEST_F(GuardProcessTest, AnEventReportsHowARankEnded) {
  const auto events = run({shell_rank(0, "exit 7")});
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].kind, Kind::kEnded);
  EXPECT_EQ(events[0].rank, 0);
  EXPECT_GT(events[0].pid, 0);
  EXPECT_EQ(WEXITSTATUS(events[0].value), 7);
  EXPECT_EQ(events[1].kind, Kind::kGone);
  EXPECT_EQ(events[1].value, 0);
}

/// A file that the command after the end of a rank makes.
class MadeFile {
 public:
  explicit MadeFile(const std::string& name)
      : path_(testing::TempDir() + "/" + name + "_" + std::to_string(::getpid())) {}
  ~MadeFile() {
    ::unlink((path_ + ".pid").c_str());
    ::unlink(path_.c_str());
  }
  MadeFile(const MadeFile&) = delete;
  MadeFile& operator=(const MadeFile&) = delete;

  /// A rank whose command after the end makes the file, some time after the end. The command writes
  /// its pid into the file $MADE.pid, and runs `before` first.
  RankCommand rank(const std::string& script, const std::string& before = "") const {
    RankCommand rank = shell_rank(0, script);
    rank.environment["MADE"] = path_;
    rank.after_end = {
        "/bin/sh", "-c", "echo $$ > $MADE.pid; cat; " + before + "sleep 0.3; echo done > $MADE"};
    return rank;
  }
  bool exists() const { return ::access(path_.c_str(), F_OK) == 0; }

 private:
  std::string path_;
};

constexpr const char* kWaitForPid = "until [ -s $MADE.pid ]; do sleep 0.02; done; ";

TEST_F(GuardProcessTest, TheCommandAfterTheEndRunsWhenARankHasEnded) {
  const MadeFile file("after_end");
  run({file.rank("exit 3")});
  EXPECT_TRUE(file.exists());
}

TEST_F(GuardProcessTest, TheCommandAfterTheEndIsNotKilledWithTheRanks) {
  const MadeFile file("after_kill");
  lose_launcher();
  const auto events = run({file.rank("exec sleep 1000")});
  EXPECT_THAT(statuses(events), ElementsAre(SIGKILL));
  EXPECT_TRUE(file.exists());
}

int starts_of_after_end(const std::vector<GuardEvent>& events) {
  return static_cast<int>(std::ranges::count(events, Kind::kAfterEnd, &GuardEvent::kind));
}

TEST_F(GuardProcessTest, TheCommandAfterTheEndStartsAgainIfItIsKilledWhileTheRankRuns) {
  const MadeFile file("killed_before");
  const auto events =
      run({file.rank(std::string(kWaitForPid) +
                     "pid=$(cat $MADE.pid); rm $MADE.pid; kill -9 $pid; " + kWaitForPid)});
  EXPECT_EQ(starts_of_after_end(events), 2);
  EXPECT_TRUE(file.exists());
}

TEST_F(GuardProcessTest, TheCommandAfterTheEndStartsAgainIfItIsKilledTogetherWithTheRank) {
  const MadeFile file("killed_with");
  const auto events = run({file.rank(std::string(kWaitForPid) + "kill -9 $(cat $MADE.pid) $$")});
  EXPECT_THAT(statuses(events), ElementsAre(SIGKILL));
  EXPECT_EQ(starts_of_after_end(events), 2);
  EXPECT_TRUE(file.exists());
}

TEST_F(GuardProcessTest, TheCommandAfterTheEndStartsAgainIfItIsKilledAfterTheEndOfTheRank) {
  const MadeFile file("killed_after");
  const auto events =
      run({file.rank("exit 3", "mkdir $MADE.once && kill -9 $$; rmdir $MADE.once; ")});
  EXPECT_EQ(starts_of_after_end(events), 2);
  EXPECT_TRUE(file.exists());
}

TEST_F(GuardProcessTest, ACommandAfterTheEndThatIsAlwaysKilledDoesNotKeepTheGuardBusy) {
  const MadeFile file("always_killed");
  const auto events = run({file.rank("exit 3", "kill -9 $$; ")});
  EXPECT_EQ(starts_of_after_end(events), 4);
  EXPECT_FALSE(file.exists());
}

TEST_F(GuardProcessTest, TheEventOfTheEndHasTheDetailThatTheProcessWroteToItsPipe) {
  const MadeFile file("end_detail");
  const auto detail_of = [&](const std::string& script) {
    const auto events = run({file.rank(script)});
    const auto end = std::ranges::find(events, Kind::kEnded, &GuardEvent::kind);
    return end == events.end() ? EndDetail{.memory_limit = -1} : end->detail;
  };
  const std::string half = "'\\0\\0\\0\\0\\1\\0\\0\\0'";
  const std::string pipe = " >/proc/self/fd/$PEAL_END_PIPE";
  EXPECT_EQ(detail_of("printf " + half + "'\\0\\0\\0\\0\\0\\0\\0\\0'" + pipe),
            EndDetail{.container_start = ContainerStart::kFailed});
  EXPECT_EQ(detail_of("printf " + half + pipe), EndDetail{}) << "a part is not a detail";
  EXPECT_EQ(detail_of("sleep 100 & exit 0"), EndDetail{}) << "the other process keeps the pipe";
}

TEST_F(GuardProcessTest, AWarningSetsTheFlagsOfAllRanksAndSendsNoSignal) {
  order({.kind = GuardOrder::Kind::kWarn});
  const std::string wait =
      "until [ $(od -An -N4 -td4 $PEAL_STOP_FLAG) = -1 ]; do sleep 0.05; done; exit 7";
  const auto events = run({shell_rank(0, wait), shell_rank(1, wait)});
  EXPECT_THAT(statuses(events), ElementsAre(7 << 8, 7 << 8));
}

TEST_F(GuardProcessTest, ARankThatDoesNotLookAtItsFlagIsAskedBySigterm) {
  order({.kind = GuardOrder::Kind::kAsk, .signal = SIGTERM});
  const auto events = run({shell_rank(0, "exec sleep 1000")});
  EXPECT_THAT(statuses(events), ElementsAre(SIGTERM));
}

TEST_F(GuardProcessTest, ARankHasItsOwnFlagInsteadOfThatOfAnOuterLauncher) {
  RankCommand rank = shell_rank(0, "[ $PEAL_STOP_FLAG != outer ] && [ -f $PEAL_STOP_FLAG ]");
  rank.environment["PEAL_STOP_FLAG"] = "outer";
  EXPECT_THAT(statuses(run({rank})), ElementsAre(0));
}

TEST_F(GuardProcessTest, AProgramThatCannotRunEndsTheOtherRanks) {
  RankCommand bad = shell_rank(1, "");
  bad.program = "/dev/null";
  const auto events = run({shell_rank(0, "exec sleep 100"), bad});
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].kind, Kind::kNotStarted);
  EXPECT_EQ(events[0].rank, 1);
  EXPECT_EQ(events[0].value, EACCES);
  EXPECT_EQ(events[1].kind, Kind::kEnded);
  EXPECT_EQ(events[2].kind, Kind::kGone);
}

TEST_F(GuardProcessTest, SignalsArePassedOnToTheProcessGroup) {
  order({GuardOrder::Kind::kPassOn, SIGUSR1, SignalOrigin::kProcess});
  const auto events = run({shell_rank(0, "sleep 100; exit 1")});
  EXPECT_THAT(statuses(events), ElementsAre(SIGUSR1));
}

TEST_F(GuardProcessTest, AStoppedRankIsResumedSoThatItCanEnd) {
  order({GuardOrder::Kind::kPassOn, SIGSTOP, SignalOrigin::kProcess});
  order({GuardOrder::Kind::kStop, SIGTERM, SignalOrigin::kProcess});
  const auto events = run({shell_rank(0, "exec sleep 100")});
  EXPECT_THAT(statuses(events), ElementsAre(SIGTERM));
}

TEST_F(GuardProcessTest, ARankThatIsStoppedWhenTheLauncherEndsItIsReported) {
  std::thread launcher([this] {
    siginfo_t stopped_child{};
    while (::waitid(P_ALL, 0, &stopped_child, WSTOPPED | WNOWAIT) != 0) {
      std::this_thread::sleep_for(milliseconds(1));  // the child has not started yet
    }
    order({GuardOrder::Kind::kStop, SIGTERM, SignalOrigin::kProcess});
  });
  const auto events =
      run({shell_rank(0, "kill -STOP $$; sleep 100"), shell_rank(1, "exec sleep 100")});
  launcher.join();
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].kind, Kind::kStopped);
  EXPECT_EQ(events[0].rank, 0);
}

TEST_F(GuardProcessTest, ARankThatDoesNotEndWithinTheGraceIsKilled) {
  duty_.grace = milliseconds(0);
  order({GuardOrder::Kind::kStop, SIGCONT, SignalOrigin::kProcess});  // a signal that ends no rank
  EXPECT_THAT(statuses(run({shell_rank(0, "exec sleep 100"), shell_rank(1, "exec sleep 100")})),
              ElementsAre(SIGKILL, SIGKILL));
}

TEST_F(GuardProcessTest, TheGuardKillsAllRanksWhenTheLauncherIsGone) {
  lose_launcher();
  EXPECT_THAT(statuses(run({shell_rank(0, "trap '' TERM; setsid sleep 100 & sleep 100")})),
              ElementsAre(SIGKILL));
}

TEST_F(GuardProcessTest, TheGuardEndsTheLeftoverProcessesOfARank) {
  const auto events = run({shell_rank(0, "setsid sh -c 'sleep 100 & sleep 100' & exit 0")});
  EXPECT_THAT(statuses(events), ElementsAre(0));
}

TEST_F(GuardProcessTest, ASignalOfTheTerminalIsNotSentAgainToTheRankThatSharesTheTerminal) {
  duty_.terminal_group = ::getpgrp();
  order({GuardOrder::Kind::kPassOn, SIGUSR1, SignalOrigin::kTerminal});
  order({GuardOrder::Kind::kPassOn, SIGUSR2, SignalOrigin::kProcess});
  const auto events = run({shell_rank(0, "exec sleep 100"), shell_rank(1, "exec sleep 100")});
  EXPECT_THAT(statuses(events), testing::UnorderedElementsAre(SIGUSR2, SIGUSR1));
}

TEST(ProcessTreeTest, OrphanedDescendantsAreKilledToo) {
  const OrphanAdoption adoption;
  const pid_t child = ::fork();
  if (child == 0) {
    if (::fork() == 0) {
      ::setsid();
      ::pause();
    }
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(descendants_of(::getpid()).size(), 1u);
  EXPECT_EQ(kill_descendants(Deadline::after(minutes(1))), 0);
}

TEST(ProcessTreeTest, ChildrenAndTheirChildrenAreFound) {
  Pipe pipe;
  const pid_t child = ::fork();
  if (child == 0) {
    const pid_t grandchild = ::fork();
    if (grandchild == 0) ::pause();
    [[maybe_unused]] const auto written =
        ::write(pipe.writer.get(), &grandchild, sizeof grandchild);
    ::pause();
  }
  ::fcntl(pipe.reader.get(), F_SETFL, 0);  // now it blocks
  pid_t grandchild = 0;
  ASSERT_EQ(::read(pipe.reader.get(), &grandchild, sizeof grandchild), ssize_t{sizeof grandchild});
  EXPECT_THAT(descendants_of(::getpid()), ElementsAre(child, grandchild));
  EXPECT_EQ(kill_descendants(Deadline::after(milliseconds(0))), 2);
  const OrphanAdoption adoption;
  EXPECT_EQ(kill_descendants(Deadline::after(minutes(1))), 0);
}

}  // namespace
}  // namespace peal::launch
