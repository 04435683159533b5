// Real processes, launched from the test's own process. Tests that signal or kill a launcher run
// the program, in peal/cli.
#include "peal/launch/launcher.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/base/testing/quickest.h"
#include "peal/launch/tail.h"
#include "peal/system/private_folder.h"

namespace peal::launch {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using TemporaryFile = std::unique_ptr<std::FILE, CloseFile>;

TemporaryFile temporary_file() {
  TemporaryFile file(std::tmpfile());
  ::fcntl(::fileno(file.get()), F_SETFD, FD_CLOEXEC);
  return file;
}

std::vector<std::string> lines_of(std::istream& text) {
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> lines_of(const TemporaryFile& file) {
  std::string text;
  std::rewind(file.get());
  for (int c = 0; (c = std::fgetc(file.get())) != EOF;) text.push_back(static_cast<char>(c));
  std::istringstream stream(text);
  return lines_of(stream);
}

struct Outcome {
  LaunchReport report;
  std::vector<std::string> out;
  std::vector<std::string> err;
};

/// Options for `ranks` ranks that run a shell script.
LaunchOptions shell(int ranks, const std::string& script) {
  LaunchOptions options;
  options.command = {"sh", "-c", script};
  options.ranks = ranks;
  options.grace = minutes(1);
  return options;
}

/// A named pipe, by which one rank waits for another: read x < $FIFO, and echo > $FIFO.
class Fifo {
 public:
  Fifo() {
    std::string name = (std::filesystem::temp_directory_path() / "peal-fifo-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    ::mkfifo((folder_ / "fifo").c_str(), 0600);
  }
  ~Fifo() { std::filesystem::remove_all(folder_); }
  Assignment variable() const { return {"FIFO", folder_ / "fifo"}; }

 private:
  std::filesystem::path folder_;
};

Outcome launch(const LaunchOptions& options, const std::string& program = "/bin/sh") {
  const TemporaryFile out = temporary_file();
  const TemporaryFile err = temporary_file();
  const auto ranks = plan_ranks(options,
                                JobContext{.id = "test", .secret = Secret("hush"), .port = 4711},
                                program,
                                divide_cores(usable_cores(), options.ranks),
                                process_variables());
  SignalReader signals;
  Outcome outcome{
      .report = run(options, ranks, {::fileno(out.get())}, {::fileno(err.get())}, signals),
      .out = {},
      .err = {}};
  outcome.out = lines_of(out);
  outcome.err = lines_of(err);
  return outcome;
}

TEST(LauncherTest, EachRankGetsItsRankAndWorldSize) {
  const Outcome outcome = launch(shell(3, "echo rank $RANK of $WORLD_SIZE"));
  EXPECT_THAT(outcome.out,
              UnorderedElementsAre("[0] rank 0 of 3", "[1] rank 1 of 3", "[2] rank 2 of 3"));
  EXPECT_THAT(outcome.err, IsEmpty());
  EXPECT_EQ(exit_code(outcome.report), 0);
  EXPECT_EQ(outcome.report.ends.size(), 3u);
}

TEST(LauncherTest, TheRanksOfANodeHaveTheirNumbersInTheWholeJobEverywhere) {
  const PrivateFolder logs("peal-test.");
  LaunchOptions options = shell(2, "echo rank $RANK of $WORLD_SIZE; [ $RANK = 4 ] || exit 3");
  options.node = {.nodes = 3, .node = 2, .master = "m", .port = 29500};
  options.log_directory = logs.path();
  const Outcome outcome = launch(options);
  EXPECT_THAT(outcome.out, UnorderedElementsAre("[4] rank 4 of 6", "[5] rank 5 of 6"));
  EXPECT_THAT(describe(outcome.report), HasSubstr("peal: the last lines of rank 5:\n  | rank 5"));
  EXPECT_EQ(outcome.report.node, 2);
  std::ifstream log(logs.path() / "rank-5.out");
  EXPECT_THAT(lines_of(log), ElementsAre("rank 5 of 6"));
}

TEST(LauncherTest, AFailedStartOnANodeNamesTheProgram) {
  LaunchOptions options = shell(2, "");
  options.node = {.nodes = 2, .node = 1, .master = "m", .port = 29500};
  const Outcome outcome = launch(options, "/etc/passwd");
  EXPECT_THAT(describe(outcome.report), HasSubstr("cannot start rank 2: /etc/passwd"));
}

TEST(LauncherTest, StdoutAndStderrStaySeparate) {
  const Outcome outcome = launch(shell(1, "echo to out; echo to err >&2"));
  EXPECT_THAT(outcome.out, ElementsAre("[0] to out"));
  EXPECT_THAT(outcome.err, ElementsAre("[0] to err"));
}

TEST(LauncherTest, WithoutLabelsLinesAreUnchanged) {
  LaunchOptions options = shell(2, "echo same");
  options.labels = Labels::kNone;
  EXPECT_THAT(launch(options).out, ElementsAre("same", "same"));
}

TEST(LauncherTest, HiddenOutputIsLoggedAndQuotedInTheReport) {
  const PrivateFolder logs("peal-test.");
  LaunchOptions options = shell(2, "echo out $RANK; echo err $RANK >&2; [ $RANK = 2 ] || exit 3");
  options.node = {.nodes = 2, .node = 1, .master = "m", .port = 29500};
  options.log_directory = logs.path();
  options.hidden_out = {1};
  options.hidden_err = {0, 1};
  const Outcome outcome = launch(options);
  EXPECT_THAT(outcome.out, ElementsAre("[2] out 2"));
  EXPECT_THAT(outcome.err, IsEmpty());
  std::ifstream log(logs.path() / "rank-3.out");
  EXPECT_THAT(lines_of(log), ElementsAre("out 3"));
  EXPECT_THAT(describe(outcome.report), HasSubstr("  | out 3\n"));
}

TEST(LauncherTest, LinesStayWholeAndInOrderWhenRanksWriteConcurrently) {
  // awk writes blocks of some KB, which begin and end in the middle of lines.
  const Outcome outcome = launch(shell(
      2,
      "awk 'BEGIN { for (i = 0; i < 10000; i++) print \"line\", i, \"of\", ENVIRON[\"RANK\"] }'"));
  ASSERT_EQ(outcome.out.size(), 20'000u);
  std::map<char, int> next;
  for (const std::string& line : outcome.out) {
    const char rank = line.at(1);
    ASSERT_EQ(line, fmt::format("[{0}] line {1} of {0}", rank, next[rank]++));
  }
  EXPECT_EQ(next, (std::map<char, int>{{'0', 10'000}, {'1', 10'000}}));
}

TEST(LauncherTest, ALastLineWithoutANewlineIsShown) {
  EXPECT_THAT(launch(shell(2, "printf 'no newline'")).out,
              UnorderedElementsAre("[0] no newline", "[1] no newline"));
}

TEST(LauncherTest, WithoutATerminalProgressOfRankZeroIsLinesAndOtherRanksShowTheEnd) {
  const Outcome outcome = launch(shell(2, R"(printf '\r10%%\r20%%\r100%%\n')"));
  EXPECT_THAT(outcome.out, testing::IsSupersetOf({"[0] 10%", "[0] 20%", "[0] 100%", "[1] 100%"}));
  EXPECT_EQ(outcome.out.size(), 4u);
}

TEST(LauncherTest, MoreRanksThanCoresAreNotBound) {
  const int ranks = static_cast<int>(::sysconf(_SC_NPROCESSORS_CONF)) + 1;
  LaunchOptions options =
      shell(ranks, "echo $OMP_NUM_THREADS; grep Cpus_allowed_list /proc/self/status");
  options.labels = Labels::kNone;
  options.variables = {};
  ::unsetenv("OMP_NUM_THREADS");
  const Outcome outcome = launch(options);
  std::map<std::string, int> seen;
  for (const std::string& line : outcome.out) ++seen[line];
  EXPECT_EQ(seen["1"], ranks);
  EXPECT_EQ(seen.size(), 2u) << "all ranks may use the same CPUs";
}

TEST(LauncherTest, RanksRunOnTheirShareOfTheCores) {
  const std::vector<Core> cores = usable_cores();
  if (cores.size() < 2) GTEST_SKIP() << "this machine has only one core";
  std::vector<std::string> expected;
  for (const CoreShare& share : divide_cores(cores, 2)) {
    expected.push_back(fmt::format("{} cpus", share.cpus.size()));
  }
  LaunchOptions options = shell(2, "echo $(nproc) cpus");
  options.labels = Labels::kNone;
  options.variables = {{"OMP_NUM_THREADS", ""}};  // nproc would use it
  EXPECT_THAT(launch(options).out, testing::UnorderedElementsAreArray(expected));
}

TEST(LauncherTest, TheFirstFailureEndsTheOthersAndIsReportedWithItsLastLines) {
  const Outcome outcome = launch(shell(3, R"(
      if [ $RANK = 1 ]; then
        for i in $(seq 30); do echo line $i; done
        exit 3
      fi
      sleep 100)"));
  EXPECT_EQ(exit_code(outcome.report), 3);
  const ProcessEnd* failure = main_failure(outcome.report);
  ASSERT_NE(failure, nullptr);
  EXPECT_EQ(failure->rank, 1);
  ASSERT_EQ(failure->last_lines.size(), Tail::kLines);
  EXPECT_EQ(failure->last_lines.back(), "line 30");
  EXPECT_THAT(describe(outcome.report),
              AllOf(HasSubstr("rank 1 (pid"),
                    HasSubstr("exit code 3"),
                    HasSubstr("ranks 0 and 2 were ended by the launcher")));
}

TEST(LauncherTest, TheLastLinesLeaveOutStackFramesOfLibTorch) {
  const Outcome outcome = launch(shell(1, R"(
      echo no luck
      echo "Exception raised from f at f.cpp:7 (most recent call first):"
      for i in $(seq 30); do echo "frame #$i: f() + 0x9d"; done
      echo the film ends
      echo "frame #12 is dark"
      exit 3)"));
  EXPECT_EQ(outcome.out.size(), 34u);
  EXPECT_THAT(main_failure(outcome.report)->last_lines,
              ElementsAre("no luck", "the film ends", "frame #12 is dark"));
}

TEST(LauncherTest, ARankThatFailsSoonAfterTheFirstFailsByItselfAndIsListedToo) {
  const Fifo fifo;
  LaunchOptions options = shell(3, R"(
      case $RANK in
        0) echo $$ > $FIFO; exit 1;;
        1) read pid < $FIFO; while kill -0 $pid; do :; done; echo out of luck; exit 42;;
        2) sleep 100;;
      esac 2>&-)");
  options.variables = {fifo.variable()};
  const Outcome outcome = launch(options);
  EXPECT_EQ(exit_code(outcome.report), 1);
  EXPECT_THAT(outcome.out, ElementsAre("[1] out of luck"));
  const std::string text = describe(outcome.report);
  EXPECT_THAT(text,
              HasSubstr("2 ranks failed, the likely cause first; rank 2 was ended by the "
                        "launcher:\n  rank 0 (pid"));
  EXPECT_THAT(text, HasSubstr("  rank 1 (pid"));
  EXPECT_THAT(text, HasSubstr("ended with exit code 42"));
}

TEST(LauncherTest, ARankThatEndsWithZeroAfterAFailureIsNotMentioned) {
  const Fifo fifo;
  LaunchOptions options = shell(2, R"(
      case $RANK in
        0) echo $$ > $FIFO; exit 3;;
        1) read pid < $FIFO; while kill -0 $pid; do :; done;;
      esac 2>&-)");
  options.variables = {fifo.variable()};
  const Outcome outcome = launch(options);
  EXPECT_EQ(exit_code(outcome.report), 3);
  EXPECT_THAT(describe(outcome.report), Not(HasSubstr("rank 1")));
}

TEST(LauncherTest, TheLauncherDoesNotWaitWhenAllRanksHaveFailed) {
  constexpr milliseconds kWait(500);  // half of the shortest
  EXPECT_LT(quickest(kWait,
                     [] {
                       const Outcome outcome = launch(shell(3, "exit 1"));
                       EXPECT_EQ(exit_code(outcome.report), 1);
                       EXPECT_THAT(describe(outcome.report), HasSubstr("3 ranks failed"));
                       return outcome.report.after - outcome.report.ends.back().after;
                     }),
            kWait);
}

TEST(LauncherTest, ADeathByASignalIsReported) {
  const Outcome outcome = launch(shell(2, "if [ $RANK = 1 ]; then kill -SEGV $$; fi; sleep 100"));
  EXPECT_EQ(exit_code(outcome.report), 128 + SIGSEGV);
  EXPECT_THAT(describe(outcome.report), HasSubstr("rank 1 (pid"));
  EXPECT_THAT(describe(outcome.report), HasSubstr("SIGSEGV"));
}

TEST(LauncherTest, ARankThatEndsWithZeroDoesNotEndTheOthers) {
  const Fifo fifo;
  LaunchOptions options =
      shell(2,
            "if [ $RANK = 1 ]; then read pid < $FIFO; while kill -0 $pid; do :; done; echo done; "
            "else echo $$ > $FIFO; fi 2>&-");
  options.variables = {fifo.variable()};
  const Outcome outcome = launch(options);
  EXPECT_THAT(outcome.out, ElementsAre("[1] done"));
  EXPECT_EQ(exit_code(outcome.report), 0);
}

TEST(LauncherTest, RanksMayUseTheGraceToEnd) {
  const Fifo fifo;
  LaunchOptions options = shell(2, R"(
      case $RANK in
        0) trap 'echo saved; exit 0' TERM; echo ready > $FIFO; while :; do sleep 0.01; done;;
        1) read x < $FIFO; exit 5;;
      esac)");
  options.variables = {fifo.variable()};
  const Outcome outcome = launch(options);
  EXPECT_THAT(outcome.out, ElementsAre("[0] saved"));
  EXPECT_EQ(exit_code(outcome.report), 5);
  EXPECT_EQ(outcome.report.ends.back().ended_by, EndedBy::kRequest);
}

TEST(LauncherTest, ARankThatIgnoresSigtermIsKilledAfterTheGrace) {
  const Fifo fifo;
  LaunchOptions options = shell(2, R"(
      case $RANK in
        0) trap '' TERM; echo ready > $FIFO; while :; do sleep 0.01; done;;
        1) read x < $FIFO; exit 5;;
      esac)");
  options.variables = {fifo.variable()};
  options.grace = milliseconds(100);
  const Outcome outcome = launch(options);
  EXPECT_EQ(exit_code(outcome.report), 5);
  EXPECT_EQ(outcome.report.ends.back().ended_by, EndedBy::kKill);
  EXPECT_THAT(describe(outcome.report), HasSubstr("rank 0 was killed, not having ended"));
}

TEST(LauncherTest, GrandchildrenThatHoldTheOutputOpenDoNotBlockTheLauncher) {
  const Outcome outcome = launch(shell(2, "setsid sleep 100000 & echo done"));
  EXPECT_EQ(outcome.out.size(), 2u);
  EXPECT_EQ(exit_code(outcome.report), 0);
}

TEST(LauncherTest, ARankMayCloseItsStdoutAndContinue) {
  const Outcome outcome = launch(shell(1, "echo first; exec >&-; echo second >&2"));
  EXPECT_THAT(outcome.out, ElementsAre("[0] first"));
  EXPECT_THAT(outcome.err, ElementsAre("[0] second"));
  EXPECT_EQ(exit_code(outcome.report), 0);
}

TEST(LauncherTest, NoDescriptorOfTheLauncherReachesARank) {
  std::vector<std::string> expected;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int flags = ::fcntl(std::stoi(entry.path().filename()), F_GETFD);
    if ((flags & FD_CLOEXEC) == 0) expected.push_back("[0] " + entry.path().filename().string());
  }
  EXPECT_THAT(launch(shell(1, "ls /proc/$$/fd")).out, testing::UnorderedElementsAreArray(expected));
}

TEST(LauncherTest, LogsHoldTheOutputOfEachRankWithoutLabels) {
  std::string name = (std::filesystem::temp_directory_path() / "peal-logs-XXXXXX").string();
  const std::filesystem::path folder = ::mkdtemp(name.data());
  LaunchOptions options = shell(2, R"(printf 'out %s' $RANK; printf '1%%\r2%%\n' >&2)");
  options.log_directory = folder / "new" / "logs";
  launch(options);
  for (const std::string rank : {"0", "1"}) {
    std::ifstream out(options.log_directory + "/rank-" + rank + ".out");
    std::ifstream err(options.log_directory + "/rank-" + rank + ".err");
    EXPECT_THAT(lines_of(out), ElementsAre("out " + rank));
    EXPECT_THAT(lines_of(err), ElementsAre("1%\r2%"));
  }
  std::filesystem::remove_all(folder);
}

TEST(LauncherTest, LogsAndLabelsCanBeThoseOfHorovodrun) {
  std::string name = (std::filesystem::temp_directory_path() / "peal-logs-XXXXXX").string();
  const std::filesystem::path folder = ::mkdtemp(name.data());
  LaunchOptions options = shell(11, "[ $RANK = 3 ] && { echo out; echo err >&2; }; exit 0");
  options.labels = Labels::kStream;
  options.log_directory = folder / "new" / "logs";
  options.log_names = LogNames::kFolders;
  const Outcome outcome = launch(options);
  EXPECT_THAT(outcome.out, ElementsAre("[3]<stdout>:out"));
  EXPECT_THAT(outcome.err, ElementsAre("[3]<stderr>:err"));
  std::ifstream out(options.log_directory + "/rank.03/stdout");
  std::ifstream err(options.log_directory + "/rank.03/stderr");
  EXPECT_THAT(lines_of(out), ElementsAre("out"));
  EXPECT_THAT(lines_of(err), ElementsAre("err"));
  EXPECT_TRUE(std::filesystem::exists(options.log_directory + "/rank.10/stdout"));
  std::filesystem::remove_all(folder);
}

TEST(LauncherTest, ATimestampComesBeforeEachLine) {
  LaunchOptions options = shell(1, "echo a; echo b");
  options.timestamps = Timestamps::kOn;
  EXPECT_THAT(launch(options).out,
              ElementsAre(testing::MatchesRegex(".*:..:.. 20..\\[0\\] a"),
                          testing::MatchesRegex(".*:..:.. 20..\\[0\\] b")));
}

TEST(LauncherTest, WhenTheDecidingRanksHaveEndedWellTheOthersAreEndedAndTheJobHasSucceeded) {
  LaunchOptions options =
      shell(3, "[ $RANK != 0 ] || exit 0; trap 'echo asked; exit 3' TERM; sleep 1000 & wait");
  options.deciding = {0};
  const Outcome outcome = launch(options);
  EXPECT_TRUE(outcome.report.is_decided);
  EXPECT_EQ(exit_code(outcome.report), 0);
  EXPECT_EQ(describe(outcome.report), "");
}

TEST(LauncherTest, AFailureBeforeTheDecisionFailsTheJob) {
  LaunchOptions options = shell(2, "[ $RANK = 0 ] || exit 4; sleep 1000");
  options.deciding = {0};
  const Outcome outcome = launch(options);
  EXPECT_FALSE(outcome.report.is_decided);
  EXPECT_EQ(exit_code(outcome.report), 4);
}

TEST(LauncherTest, TheTimeLimitEndsTheRanksAndGivesAnExitCodeOfItsOwn) {
  LaunchOptions options = shell(2, "sleep 1000");
  options.time_limit = std::chrono::milliseconds(300);
  const Outcome outcome = launch(options);
  EXPECT_EQ(exit_code(outcome.report), 124);
  EXPECT_THAT(describe(outcome.report), HasSubstr("by its time limit of 0.3 s"));
}

TEST(LauncherTest, LogsThatCannotBeWrittenFailBeforeAnyProcessStarts) {
  LaunchOptions options = shell(1, "echo started");
  options.log_directory = "/dev/null/logs";
  try {
    launch(options);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kResource);
    EXPECT_THAT(error.what(), HasSubstr("/dev/null/logs"));
  }
}

TEST(LauncherTest, AScriptWithoutAnInterpreterIsExplained) {
  std::string name = (std::filesystem::temp_directory_path() / "peal-script-XXXXXX").string();
  {
    const Fd file(::mkstemp(name.data()));
    ASSERT_EQ(::write(file.get(), "echo hello\n", 11), 11);
    ::fchmod(file.get(), 0755);
  }
  LaunchOptions options = shell(2, "");
  auto ranks = plan_ranks(options, {}, name, divide_cores({}, options.ranks), process_variables());
  const Fd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  SignalReader signals;
  const LaunchReport report = run(options, ranks, {null.get()}, {null.get()}, signals);
  std::filesystem::remove(name);
  EXPECT_EQ(exit_code(report), 126);
  EXPECT_THAT(describe(report), AllOf(HasSubstr(name), HasSubstr("#!/bin/sh")));
}

TEST(LauncherTest, TheCallersSignalMaskIsRestored) {
  sigset_t before, after;
  ::sigprocmask(SIG_SETMASK, nullptr, &before);
  launch(shell(1, "true"));
  ::sigprocmask(SIG_SETMASK, nullptr, &after);
  for (int signal = 1; signal < SIGRTMIN; ++signal) {
    EXPECT_EQ(sigismember(&before, signal), sigismember(&after, signal)) << signal;
  }
}

TEST(LauncherTest, RanksStartWithTheCallersSignalMask) {
  EXPECT_THAT(launch(shell(1, "exec grep SigBlk /proc/self/status")).out,
              ElementsAre(HasSubstr("0000000000000000")));
}

}  // namespace
}  // namespace peal::launch
