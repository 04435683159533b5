// Tests `peal run` from outside: environment, signals, terminals, output, and every kind of end.
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/cli/testing/program.h"
#include "peal/net/socket.h"
#include "peal/system/private_folder.h"
#include "peal/system/process_state.h"

namespace peal::cli {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// Prints "ready", and then lives until a signal ends it. The sleeps are short, because a shell
/// handles signals only between commands.
constexpr const char* kLive = "echo ready; while :; do sleep 0.01; done";

TEST(RunEnvironmentTest, AllRanksOfARunShareAJobAndASecretThatDifferBetweenRuns) {
  std::set<std::string> seen;
  for (int i = 0; i < 2; ++i) {
    const auto lines = sorted_lines(
        run_program(shell(2, "echo $PEAL_JOB $PEAL_SECRET $MASTER_ADDR", {"--no-prefix"})).out);
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_EQ(lines[0], lines[1]);
    EXPECT_EQ(lines[0].size(), 16 + 1 + 64 + 1 + std::string("127.0.0.1").size());
    seen.insert(lines[0]);
  }
  EXPECT_EQ(seen.size(), 2u);
}

TEST(RunEnvironmentTest, TheMasterPortIsReservedForTheRanks) {
  Program program(shell(1, fmt::format("echo port $MASTER_PORT; {}", kLive), {"--no-prefix"}));
  program.read_until("ready");
  const net::Address address =
      net::Address::parse("127.0.0.1:" + program.out().substr(5, program.out().find('\n') - 5));
  EXPECT_NO_THROW(net::listen_on(address));
  for (int i = 0; i < 100; ++i) {
    const Fd other = net::listen_on(net::Address::parse("127.0.0.1:0"));
    EXPECT_NE(net::local_address(other.get()), address);
  }
}

TEST(RunEnvironmentTest, VariablesFromTheCommandLineReachTheRanks) {
  const Ended ended = run_program(
      shell(1, "echo $A,$B,$OMP_NUM_THREADS", {"-x", "A=1", "-xB=x=y", "-x", "OMP_NUM_THREADS=9"}));
  EXPECT_EQ(ended.out, "[0] 1,x=y,9\n");
}

TEST(RunEnvironmentTest, OnlyRankZeroReadsTheInput) {
  Program program(shell(2, "cat; echo end"));
  program.write("hello\nrank 0\n");
  program.close_input();
  EXPECT_THAT(sorted_lines(program.wait().out),
              ElementsAre("[0] end", "[0] hello", "[0] rank 0", "[1] end"));
}

TEST(RunFailureTest, TheReportAndTheExitCodeAreThoseOfTheFirstFailure) {
  const Ended ended =
      run_program(shell(2, "if [ $RANK = 1 ]; then echo out of luck >&2; exit 42; fi; sleep 1000"));
  EXPECT_EQ(ended.status, 42);
  EXPECT_THAT(ended.err,
              AllOf(HasSubstr("[1] out of luck\n"),
                    HasSubstr("peal: rank 1 (pid "),
                    HasSubstr("ended with exit code 42"),
                    HasSubstr("rank 0 was ended by the launcher"),
                    HasSubstr("  | out of luck\n")));
}

TEST(RunFailureTest, AClosedOutputEndsTheRunQuietly) {
  Program program({"run", "-n", "2", "yes"});
  program.read_until("[0] y\n");
  program.close_output();
  const Ended ended = program.wait();
  EXPECT_EQ(ended.status, 128 + SIGPIPE);
  EXPECT_EQ(ended.err, "");
  program.wait_until_none_is_left();
}

TEST(RunSignalTest, SignalsArePassedOnToEveryRank) {
  for (const std::string name : {"USR1", "USR2", "HUP", "INT", "QUIT", "TERM"}) {
    const int number = std::map<std::string, int>{
        {"USR1", SIGUSR1},
        {"USR2", SIGUSR2},
        {"HUP", SIGHUP},
        {"INT", SIGINT},
        {"QUIT", SIGQUIT},
        {"TERM", SIGTERM}}.at(name);
    Program program(shell(2, fmt::format("trap 'echo got {0}; exit 0' {0}; {1}", name, kLive)));
    program.read_until("ready", 2);
    program.signal(number);
    const Ended ended = program.wait();
    EXPECT_EQ(ended.status, 0) << name << ": all ranks ended with 0";
    EXPECT_THAT(ended.out, AllOf(HasSubstr("[0] got " + name), HasSubstr("[1] got " + name)));
  }
}

TEST(RunSignalTest, AnEndBySignalIsNotReportedAsAFailure) {
  Program program(shell(2, kLive));
  program.read_until("ready", 2);
  program.signal(SIGINT);
  const Ended ended = program.wait();
  EXPECT_EQ(ended.status, 128 + SIGINT);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("peal: ended by SIGINT"), Not(HasSubstr("rank"))));
}

TEST(RunSignalTest, RanksThatStopTogetherAfterASignalToOneOfThemAreNotReportedAsAFailure) {
  const Ended ended = run_program(shell(2, "exit 143"));
  EXPECT_EQ(ended.status, 128 + SIGTERM);
  EXPECT_THAT(ended.err, StartsWith("peal: every rank ended with exit code 143 (128 + SIGTERM)"));
}

TEST(RunSignalTest, ASecondSignalKillsRanksThatIgnoredTheFirst) {
  Program program(shell(2, fmt::format("trap 'echo asked' TERM; {}", kLive), {"--grace", "1000"}));
  program.read_until("ready", 2);
  program.signal(SIGTERM);
  program.read_until("asked", 2);
  program.signal(SIGINT);  // another SIGTERM within a second would be the same request
  EXPECT_EQ(program.wait().status, 128 + SIGTERM);
  program.wait_until_none_is_left();
}

TEST(RunSignalTest, ASignalAfterAFailureReachesTheOtherRanksAndTheReportStaysThatOfTheFailure) {
  Program program(shell(2,
                        fmt::format("case $RANK in "
                                    "0) for s in USR1 INT TERM; do trap \"echo got $s\" $s; done;; "
                                    "1) echo pid $$ end; trap 'exit 3' USR1;; esac; {}",
                                    kLive),
                        {"--no-prefix", "--grace", "1000"}));
  program.read_until("ready", 2);
  const std::string out = program.out();
  const pid_t rank1 = std::stoi(out.substr(out.find("pid ") + 4));
  program.signal(SIGUSR1);  // ends rank 1 with exit code 3
  program.read_until("got USR1");
  wait_until([&] { return ::kill(rank1, 0) != 0; });
  // The guard has reaped rank 1, and reports that before it passes on another signal.
  program.signal(SIGUSR1);
  program.read_until("got USR1", 2);
  program.signal(SIGINT);
  program.read_until("got INT");
  program.signal(SIGTERM);  // kills
  const Ended ended = program.wait();
  EXPECT_EQ(ended.status, 3);
  EXPECT_THAT(ended.out, Not(HasSubstr("got TERM")));
  EXPECT_THAT(ended.err,
              AllOf(HasSubstr("peal: rank 1 (pid "),
                    HasSubstr("ended with exit code 3"),
                    HasSubstr("rank 0 was killed, as requested by SIGTERM"),
                    Not(HasSubstr("ended by SIGINT"))));
  program.wait_until_none_is_left();
}

TEST(RunSignalTest, ASignalKillsRanksThatTheLauncherIsEndingAndIsNamed) {
  Program program(shell(2,
                        fmt::format("case $RANK in "
                                    "0) trap '' USR1; trap 'echo asked' TERM;; "
                                    "1) trap 'exit 3' USR1;; esac; {}",
                                    kLive),
                        {"--no-prefix", "--grace", "1000"}));
  program.read_until("ready", 2);
  program.signal(SIGUSR1);  // ends rank 1 with exit code 3
  program.read_until("asked");
  program.signal(SIGINT);
  const Ended ended = program.wait();
  EXPECT_EQ(ended.status, 3);
  EXPECT_THAT(ended.err,
              AllOf(HasSubstr("ended with exit code 3"),
                    HasSubstr("rank 0 was killed, as requested by SIGINT")));
  program.wait_until_none_is_left();
}

TEST(RunSignalTest, StopAndContinueReachTheRanks) {
  Program program(shell(1, "echo $$ is ready; exec sleep 1000", {"--no-prefix"}));
  program.read_until(" is ready");
  const pid_t pid = std::stoi(program.out());
  program.signal(SIGTSTP);
  program.wait_until_stopped();
  wait_until([&] { return state_of_process(pid) == ProcessState::kStopped; });
  program.signal(SIGCONT);
  wait_until([&] { return state_of_process(pid) == ProcessState::kRunning; });
  program.signal(SIGTERM);
  EXPECT_EQ(program.wait().status, 128 + SIGTERM);
}

TEST(RunSignalTest, SignalsIgnoredByNohupAreNotPassedOn) {
  Program program(shell(1, fmt::format("trap 'echo got USR1; exit 0' USR1; {}", kLive)),
                  Standard::kPipes,
                  Hangup::kIgnored);
  program.read_until("ready");
  program.signal(SIGHUP);
  program.signal(SIGUSR1);
  const Ended ended = program.wait();
  EXPECT_EQ(ended.status, 0);
  EXPECT_THAT(ended.out, HasSubstr("got USR1"));
}

TEST(RunSignalTest, AReaderThatDoesNotReadDoesNotPreventTheEnd) {
  Program program({"run", "-n", "2", "yes"});
  program.read_until("[1] y\n");
  program.signal(SIGTERM);
  EXPECT_EQ(program.wait_without_reading(), 128 + SIGTERM);
  program.wait_until_none_is_left();
}

/// Each rank has a child in its group, and a child in another session that ignores SIGTERM.
constexpr const char* kFamily =
    "sleep 1000 & setsid sh -c 'trap \"\" TERM; sleep 1000 & echo ready; sleep 1000' & sleep 1000";

TEST(RunEndTest, AKilledLauncherLeavesNoProcessBehind) {
  Program program(shell(2, kFamily));
  program.read_until("ready", 2);
  EXPECT_GE(program.processes().size(), 12u);
  program.signal(SIGKILL);
  EXPECT_EQ(program.wait_without_reading(), 128 + SIGKILL);
  program.wait_until_none_is_left();
}

TEST(RunEndTest, AKilledGuardEndsTheRanksAndIsReported) {
  Program program(
      shell(2, fmt::format("echo guard $PPID; setsid sleep 1000 & {}", kLive), {"--no-prefix"}));
  program.read_until("ready", 2);
  const std::string out = program.out();
  ::kill(std::stoi(out.substr(out.find("guard ") + 6)), SIGKILL);
  const Ended ended = program.wait();
  EXPECT_EQ(ended.status, 128 + SIGKILL);
  EXPECT_THAT(ended.err, HasSubstr("guards the ranks was killed"));
  program.wait_until_none_is_left();
}

TEST(RunEndTest, TheGuardHasAnotherNameThanTheProgramAndTheCommand) {
  Program program(shell(1, fmt::format("echo guard $PPID; {}", kLive), {"--no-prefix"}));
  program.read_until("ready");
  const std::string out = program.out();
  const std::string folder = "/proc/" + out.substr(6, out.find('\n') - 6);
  std::string name, command;
  std::getline(std::ifstream(folder + "/comm") >> std::ws, name);
  std::getline(std::ifstream(folder + "/cmdline"), command, '\0');
  EXPECT_EQ(name, "rank-guard");
  EXPECT_EQ(command, "rank-guard");
}

TEST(RunEndTest, AFailureEndsTheChildrenOfTheOtherRanks) {
  Program program(shell(
      2, fmt::format("[ $RANK = 0 ] && {{ {}; }}; read x; exit 3", kFamily), {"--grace", "0.2"}));
  program.close_input();
  EXPECT_EQ(program.wait().status, 3);
  program.wait_until_none_is_left();
}

TEST(RunTerminalTest, RankZeroCanPromptAndReadTheAnswer) {
  Program program(shell(2, "[ $RANK = 1 ] || { printf 'name? '; read x; echo hello $x; }"),
                  Standard::kTerminal);
  program.read_until("name? ");
  program.write("Ada\n");
  program.read_until("[0] name? hello Ada\r\n");
  EXPECT_EQ(program.wait().status, 0);
}

TEST(RunTerminalTest, ControlCReachesEachRankOnce) {
  Program program(shell(2, fmt::format("trap 'echo interrupted; exit 7' INT; {}", kLive)),
                  Standard::kTerminal);
  program.read_until("ready", 2);
  program.write("\x03");
  const Ended ended = program.wait();
  EXPECT_EQ(ended.status, 7);
  for (const std::string line : {"[0] interrupted", "[1] interrupted"}) {
    EXPECT_NE(ended.out.find(line), std::string::npos) << ended.out;
    EXPECT_EQ(ended.out.find(line), ended.out.rfind(line)) << ended.out;
  }
}

TEST(RunTerminalTest, AProgressBarIsDrawnInPlaceAndTheWidthIsSet) {
  Program program(shell(1, R"(printf '\r10%%'; printf '\r99%%\n'; echo $PEAL_TERMINAL_WIDTH)"),
                  Standard::kTerminal);
  const Ended ended = program.wait();
  EXPECT_THAT(ended.out, HasSubstr("[0] 99%\r\n"));
  EXPECT_THAT(ended.out, HasSubstr("[0] 76\r\n"));
  EXPECT_THAT(ended.out, Not(HasSubstr("10%\r\n")));
}

/// Runs `peal run ARGUMENTS` in a shell, which redirects its output. Returns its exit code and its
/// stderr.
Ended run_in_shell(const std::string& arguments, const std::filesystem::path& folder) {
  const std::string err = folder / "err";
  const int status =
      std::system(fmt::format("{} run {} 2> {}", PEAL_PROGRAM, arguments, err).c_str());
  std::ostringstream text;
  text << std::ifstream(err).rdbuf();
  return {.status = WEXITSTATUS(status), .out = "", .err = text.str()};
}

TEST(RunOutputTest, AFailedWriteIsAnErrorAndEndsNoRank) {
  const PrivateFolder folder("peal-test.");
  const std::string mark = folder.path() / "mark";
  const Ended ended = run_in_shell(
      fmt::format("-n 2 sh -c 'echo hi; echo more; echo $RANK >> {}' > /dev/full", mark),
      folder.path());
  EXPECT_EQ(ended.status, 1);
  EXPECT_EQ(ended.err,
            "peal: cannot write standard output: No space left on device; 32 bytes of output are "
            "missing there\n");
  EXPECT_EQ(std::filesystem::file_size(mark), 4U);
}

TEST(RunOutputTest, TheFailureOfARankIsReportedBeforeMissingOutput) {
  const PrivateFolder folder("peal-test.");
  const Ended ended = run_in_shell("-n 1 sh -c 'echo hi; exit 7' > /dev/full", folder.path());
  EXPECT_EQ(ended.status, 7);
  EXPECT_THAT(ended.err,
              AllOf(HasSubstr("ended with exit code 7"),
                    HasSubstr("peal: cannot write standard output: No space left on device")));
}

TEST(RunOutputTest, AFailedWriteToStderrIsAnErrorToo) {
  EXPECT_EQ(WEXITSTATUS(std::system(PEAL_PROGRAM " run -n 1 sh -c 'echo hi >&2' 2> /dev/full")), 1);
}

TEST(RunOutputTest, ALogAtTheFileSizeLimitIsNamedAndEndsNoRank) {
  const PrivateFolder folder("peal-test.");
  const std::string logs = folder.path() / "logs";
  const std::string limited = fmt::format(
      "ulimit -f 4; exec {} run -n 1 --log-dir {} sh -c 'ulimit -f unlimited 2>/dev/null; i=0; "
      "while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done; exit 0'",
      PEAL_PROGRAM,
      logs);
  Program program({"run", "-n", "1", "--no-prefix", "bash", "-c", limited + " 2>&1 >/dev/null"});
  const Ended ended = program.wait();
  EXPECT_EQ(ended.status, 1) << ended.out << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("peal: cannot write " + logs + "/rank-0.out: File too large; "));
  std::ostringstream text;
  text << std::ifstream(logs + "/rank-0.out").rdbuf();
  EXPECT_THAT(
      text.str(),
      AllOf(StartsWith("line 0\n"), EndsWith("\npeal: output is missing here: File too large\n")));
}

TEST(RunOutputTest, LogsReplaceFilesOfThisUserAndNothingElse) {
  const PrivateFolder folder("peal-test.");
  const std::string log = folder.path() / "rank-0.out";
  const std::string target = folder.path() / "precious";
  std::ofstream(log) << "of an earlier run, and longer";
  const std::vector<std::string> run = {"run", "-n", "1", "--log-dir", folder.path(), "echo", "hi"};
  EXPECT_EQ(run_program(run).status, 0);
  std::string text;
  std::getline(std::ifstream(log), text);
  EXPECT_EQ(text, "hi");
  EXPECT_EQ(std::filesystem::status(log).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);

  std::filesystem::remove(log);
  std::ofstream(target) << "precious";
  std::filesystem::create_symlink(target, log);
  const Ended ended = run_program(run);
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("--log-dir: " + log), HasSubstr("is not replaced")));
  EXPECT_EQ(ended.out, "");
  EXPECT_EQ(std::filesystem::file_size(target), 8U);

  std::filesystem::remove(log);
  ASSERT_EQ(::mkfifo(log.c_str(), 0600), 0);
  EXPECT_EQ(run_program(run).status, 1);
}

}  // namespace
}  // namespace peal::cli
