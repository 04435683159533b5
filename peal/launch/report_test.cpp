#include "peal/launch/report.h"

#include <errno.h>
#include <signal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal::launch {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::Not;

// As waitpid(2) packs them.
constexpr int exited(int code) { return code << 8; }
constexpr int killed_by(int signal) { return signal; }

RankEnd end_of(Rank rank, int status) {
  return {.rank = rank, .pid = 4711 + rank, .status = status, .after = milliseconds(3210)};
}

/// `first` failed, then the others ended by the launcher's SIGTERM.
LaunchReport failure(const RankEnd& first, const std::vector<Rank>& others) {
  LaunchReport report;
  report.first_failure = first;
  report.ends = {first};
  for (const Rank rank : others) report.ends.push_back(end_of(rank, killed_by(SIGTERM)));
  return report;
}

TEST(ReportTest, WhenAllWentWellThereIsNothingToSay) {
  LaunchReport report;
  report.ends = {end_of(0, exited(0)), end_of(1, exited(0))};
  EXPECT_EQ(exit_code(report), 0);
  EXPECT_EQ(describe(report), "");
}

TEST(ReportTest, ADeathByASignalIsNamedWithItsLastLines) {
  LaunchReport report = failure(end_of(1, killed_by(SIGSEGV)), {0});
  report.last_lines = {"loss 0.25", "step 17"};
  EXPECT_EQ(exit_code(report), 128 + SIGSEGV);
  EXPECT_EQ(describe(report),
            "peal: rank 1 (pid 4712) was killed by SIGSEGV after 3.2 s; rank 0 was stopped. "
            "The last lines of rank 1:\n  | loss 0.25\n  | step 17\n");
}

TEST(ReportTest, AnExitCodeIsPassedOn) {
  const LaunchReport report = failure(end_of(2, exited(3)), {3, 0, 1});
  EXPECT_EQ(exit_code(report), 3);
  EXPECT_EQ(describe(report),
            "peal: rank 2 (pid 4713) ended with exit code 3 after 3.2 s; ranks 0, 1 and 3 were "
            "stopped. It wrote nothing.\n");
}

TEST(ReportTest, ManyRanksAreCounted) {
  const LaunchReport report = failure(end_of(9, exited(1)), {0, 1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_THAT(describe(report), HasSubstr("; 9 ranks were stopped"));
}

TEST(ReportTest, WhoEndedBeforeTheFailureWasNotStopped) {
  LaunchReport report = failure(end_of(1, exited(1)), {});
  report.ends.insert(report.ends.begin(), end_of(0, exited(0)));
  EXPECT_THAT(describe(report), Not(HasSubstr("stopped")));
}

TEST(ReportTest, WhoHadToBeKilledIsNamedOnce) {
  LaunchReport report = failure(end_of(1, exited(1)), {0});
  report.ends.back().status = killed_by(SIGKILL);
  report.killed = {0};
  report.grace = milliseconds(1500);
  EXPECT_THAT(describe(report), Not(HasSubstr("rank 0 was stopped")));
  EXPECT_THAT(describe(report), HasSubstr("rank 0 was killed, not having ended within 1.5 s"));
}

TEST(ReportTest, SigkillFromOutsideHintsAtTheMemory) {
  EXPECT_THAT(describe(failure(end_of(0, killed_by(SIGKILL)), {})), HasSubstr("memory"));
}

TEST(ReportTest, ASignalThatCameToTheLauncherIsNoFailureOfARank) {
  LaunchReport report;
  report.signal = SIGINT;
  report.after = milliseconds(1000);
  report.ends = {end_of(0, killed_by(SIGINT)), end_of(1, killed_by(SIGINT))};
  EXPECT_EQ(exit_code(report), 128 + SIGINT);
  EXPECT_EQ(describe(report), "peal: ended by SIGINT after 1.0 s\n");
}

TEST(ReportTest, RanksThatEndInOrderAfterASignalGiveZero) {
  LaunchReport report;
  report.signal = SIGTERM;
  report.ends = {end_of(0, exited(0))};
  EXPECT_EQ(exit_code(report), 0);
}

TEST(ReportTest, RanksThatIgnoreTheSignalGiveItsCodeAndNotThatOfTheKill) {
  LaunchReport report;
  report.signal = SIGTERM;
  report.ends = {end_of(0, killed_by(SIGKILL))};
  report.killed = {0};
  EXPECT_EQ(exit_code(report), 128 + SIGTERM);
}

TEST(ReportTest, AProgramThatCannotBeExecutedIsAsInAShell) {
  LaunchReport report;
  report.start_failure = StartFailure{.rank = 0, .program = "./train", .error = ENOEXEC};
  EXPECT_EQ(exit_code(report), 126);
  EXPECT_THAT(describe(report), HasSubstr("#!/bin/sh"));
  report.start_failure->error = ENOENT;
  EXPECT_EQ(exit_code(report), 127);
  EXPECT_THAT(describe(report), HasSubstr("interpreter"));
}

TEST(ReportTest, AReaderThatHasGoneIsMetWithSilence) {
  LaunchReport report;
  report.output_closed = true;
  report.ends = {end_of(0, killed_by(SIGTERM))};
  EXPECT_EQ(exit_code(report), 128 + SIGPIPE);
  EXPECT_EQ(describe(report), "");
}

TEST(ReportTest, ALostGuardAndSurvivorsAreSaid) {
  LaunchReport report;
  report.guard_lost = true;
  report.survivors = 2;
  EXPECT_EQ(exit_code(report), 128 + SIGKILL);
  EXPECT_THAT(describe(report), HasSubstr("guards the ranks was killed"));
  EXPECT_THAT(describe(report), HasSubstr("2 processes"));
}

TEST(ReportTest, AnUnknownSignalHasItsNumber) {
  EXPECT_THAT(describe(failure(end_of(0, killed_by(SIGRTMIN + 3)), {})),
              HasSubstr("signal " + std::to_string(SIGRTMIN + 3)));
}

}  // namespace
}  // namespace peal::launch
