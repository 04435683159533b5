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

ProcessEnd end_of(Rank rank, int status, Ending ending = Ending::kItself) {
  return {.rank = rank,
          .pid = 4711 + rank,
          .status = status,
          .after = milliseconds(3210),
          .ending = ending};
}

ProcessEnd failed_with(Rank rank, int status, const std::string& last_line) {
  ProcessEnd end = end_of(rank, status);
  end.last_lines = {last_line};
  return end;
}

/// `first` failed, then the others ended by the launcher's SIGTERM.
LaunchReport failure(const ProcessEnd& first, const std::vector<Rank>& others) {
  LaunchReport report;
  report.ends = {first};
  for (const Rank rank : others) {
    report.ends.push_back(end_of(rank, killed_by(SIGTERM), Ending::kTold));
  }
  return report;
}

LaunchReport failures(const std::vector<ProcessEnd>& ends) {
  LaunchReport report;
  report.ends = ends;
  return report;
}

constexpr const char* kLostRank1 = "peer_lost: rank 1 (pid 4712 on here) has left the group";

TEST(ReportTest, WhenAllWentWellThereIsNothingToSay) {
  LaunchReport report;
  report.ends = {end_of(0, exited(0)), end_of(1, exited(0))};
  EXPECT_EQ(exit_code(report), 0);
  EXPECT_EQ(describe(report), "");
}

TEST(ReportTest, ADeathByASignalIsNamedWithItsLastLines) {
  ProcessEnd end = end_of(1, killed_by(SIGSEGV));
  end.last_lines = {"loss 0.25", "step 17"};
  const LaunchReport report = failure(end, {0});
  EXPECT_EQ(exit_code(report), 128 + SIGSEGV);
  EXPECT_EQ(describe(report),
            "peal: rank 1 (pid 4712) was killed by SIGSEGV after 3.2 s; rank 0 was told to end\n"
            "peal: the last lines of rank 1:\n  | loss 0.25\n  | step 17\n");
}

TEST(ReportTest, AnExitCodeIsPassedOn) {
  const LaunchReport report = failure(end_of(2, exited(3)), {3, 0, 1});
  EXPECT_EQ(exit_code(report), 3);
  EXPECT_EQ(describe(report),
            "peal: rank 2 (pid 4713) ended with exit code 3 after 3.2 s; ranks 0, 1 and 3 were "
            "told to end\npeal: rank 2 wrote nothing\n");
}

TEST(ReportTest, ManyRanksAreCounted) {
  const LaunchReport report = failure(end_of(9, exited(1)), {0, 1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_THAT(describe(report), HasSubstr("; 9 ranks were told to end"));
}

TEST(ReportTest, WhoEndedWithZeroByItselfIsNotMentioned) {
  const LaunchReport report = failures(
      {end_of(0, exited(0)), failed_with(1, exited(1), "out of luck"), end_of(2, exited(0))});
  EXPECT_EQ(describe(report),
            "peal: rank 1 (pid 4712) ended with exit code 1 after 3.2 s\n"
            "peal: the last lines of rank 1:\n  | out of luck\n");
}

TEST(ReportTest, ThoseThatOnlyLostAnotherAreNamedAfterTheCauseAndApartFromWhoWasToldToEnd) {
  const LaunchReport report = failures({failed_with(0, exited(1), kLostRank1),
                                        failed_with(1, exited(42), "out of luck"),
                                        end_of(2, killed_by(SIGTERM), Ending::kTold)});
  EXPECT_EQ(exit_code(report), 42);
  EXPECT_EQ(describe(report),
            "peal: 2 ranks failed, the likely cause first; rank 2 was told to end:\n"
            "  rank 1 (pid 4712) ended with exit code 42 after 3.2 s\n"
            "  rank 0 ended having lost another rank (peer_lost)\n"
            "peal: the last lines of rank 1:\n  | out of luck\n");
}

TEST(ReportTest, WhoHasAbortedTheGroupHasLostNobody) {
  const std::string aborted = "peer_lost: the group world was aborted by rank 1: no luck";
  const LaunchReport report =
      failures({failed_with(0, exited(1), aborted), failed_with(1, exited(3), aborted)});
  EXPECT_EQ(exit_code(report), 3);
  EXPECT_THAT(
      describe(report),
      HasSubstr("the likely cause first:\n  rank 1 (pid 4712) ended with exit code 3 after"));
}

TEST(ReportTest, WhereAllHaveLostAnotherNoneOfThemIsSaidToBeTheCause) {
  const LaunchReport report = failures({failed_with(0, exited(1), kLostRank1),
                                        end_of(1, exited(0)),
                                        failed_with(2, exited(1), kLostRank1)});
  EXPECT_THAT(describe(report), testing::StartsWith("peal: 2 ranks failed:\n  rank 0 (pid"));
}

TEST(ReportTest, OfManyFailuresTheFirstAreListedAndTheOthersCounted) {
  std::vector<ProcessEnd> ends;
  for (Rank rank = 0; rank < 61; ++rank) ends.push_back(failed_with(rank, exited(1), kLostRank1));
  ends.push_back(end_of(61, exited(3)));
  ends.push_back(end_of(62, killed_by(SIGSEGV)));
  EXPECT_EQ(describe(failures(ends)),
            "peal: 63 ranks failed, the likely cause first:\n"
            "  rank 62 (pid 4773) was killed by SIGSEGV after 3.2 s\n"
            "  rank 61 (pid 4772) ended with exit code 3 after 3.2 s\n"
            "  61 ranks ended having lost another rank (peer_lost)\n"
            "peal: rank 62 wrote nothing\n");
}

TEST(ReportTest, ManyFailuresOfTheSameKindAreEightLinesAndANumber) {
  for (const std::string last_line : {"no luck", kLostRank1}) {
    std::vector<ProcessEnd> ends;
    for (Rank rank = 0; rank < 64; ++rank) ends.push_back(failed_with(rank, exited(1), last_line));
    const std::string text = describe(failures(ends));
    EXPECT_THAT(text, HasSubstr("  rank 0 (pid 4711) ended with exit code 1"));
    EXPECT_THAT(text, HasSubstr("  rank 7 (pid 4718) ended with exit code 1"));
    EXPECT_THAT(text, HasSubstr("\n  and 56 more\npeal: the last lines of rank 0:\n"));
    EXPECT_THAT(text, Not(HasSubstr("rank 8")));
  }
}

TEST(ReportTest, TheMainFailureIsTheFirstThatDidNotComeOfTheLossOfAnother) {
  struct Case {
    std::vector<ProcessEnd> ends;
    Rank main;
  };
  const std::vector<Case> cases = {
      {{failed_with(0, exited(1), "no luck"), failed_with(1, exited(2), "no luck")}, 0},
      {{failed_with(2, exited(1), kLostRank1), failed_with(0, exited(1), kLostRank1)}, 2},
      // An uncaught error ends by abort(), that of the one who lost a peer too.
      {{failed_with(0, killed_by(SIGABRT), kLostRank1),
        failed_with(1, killed_by(SIGABRT), "no luck")},
       1},
      {{failed_with(0, killed_by(SIGABRT), "no luck"), failed_with(1, exited(3), "no luck")}, 0},
      // Peers may catch the loss of a rank that crashed, and say nothing of it.
      {{failed_with(0, exited(1), "failed"), end_of(1, killed_by(SIGKILL))}, 1},
      {{end_of(0, exited(0)), failed_with(1, exited(1), kLostRank1)}, 1},
  };
  for (const Case& each : cases) {
    const LaunchReport report = failures(each.ends);
    ASSERT_NE(main_failure(report), nullptr);
    EXPECT_EQ(main_failure(report)->rank, each.main) << describe(report);
  }
  EXPECT_EQ(main_failure(failures({end_of(0, exited(0))})), nullptr);
}

TEST(ReportTest, WhoWasToldToEndAndMadeSomethingElseOfItIsNotSaidToHaveBeenStopped) {
  LaunchReport report = failure(end_of(1, exited(1)), {});
  report.ends.push_back(end_of(0, exited(0), Ending::kTold));
  report.ends.push_back(end_of(2, exited(128 + SIGTERM), Ending::kTold));
  report.ends.push_back(end_of(3, killed_by(SIGSEGV), Ending::kTold));
  EXPECT_EQ(exit_code(report), 1);
  EXPECT_THAT(describe(report), HasSubstr("; ranks 0 and 2 were told to end\n"));
  EXPECT_THAT(describe(report),
              HasSubstr("peal: rank 3 (pid 4714) was killed by SIGSEGV after 3.2 s, when it had "
                        "been told to end\n"));
}

TEST(ReportTest, ManyThatMadeSomethingElseOfItAreEightLinesAndANumber) {
  LaunchReport report = failure(failed_with(64, exited(3), "no luck"), {});
  for (Rank rank = 0; rank < 64; ++rank) {
    report.ends.push_back(end_of(rank, exited(1), Ending::kTold));
  }
  const std::string text = describe(report);
  EXPECT_THAT(text,
              HasSubstr("after 3.2 s\npeal: 64 ranks failed when they had been told to end:\n"
                        "  rank 0 (pid 4711) ended with exit code 1 after 3.2 s\n"));
  EXPECT_THAT(text,
              HasSubstr("  rank 7 (pid 4718) ended with exit code 1 after 3.2 s\n"
                        "  and 56 more\npeal: the last lines of rank 64:\n"));
  EXPECT_THAT(text, Not(HasSubstr("rank 8")));
}

TEST(ReportTest, WhoHadToBeKilledIsNamedOnce) {
  LaunchReport report = failure(end_of(1, exited(1)), {});
  report.ends.push_back(end_of(0, killed_by(SIGKILL), Ending::kKilled));
  report.grace = milliseconds(1500);
  EXPECT_THAT(describe(report), Not(HasSubstr("rank 0 was told to end")));
  EXPECT_THAT(describe(report), HasSubstr("rank 0 was killed, not having ended within 1.5 s"));
  report.cut_short = SIGINT;
  EXPECT_THAT(describe(report), HasSubstr("rank 0 was killed, as SIGINT asked for\n"));
}

TEST(ReportTest, SigkillFromOutsideHintsAtTheMemory) {
  EXPECT_THAT(describe(failure(end_of(0, killed_by(SIGKILL)), {})), HasSubstr("memory"));
}

TEST(ReportTest, ASignalThatCameToTheLauncherIsNoFailureOfARank) {
  LaunchReport report;
  report.signal = SIGINT;
  report.after = milliseconds(1000);
  report.ends = {end_of(0, killed_by(SIGINT), Ending::kTold),
                 end_of(1, killed_by(SIGINT), Ending::kTold)};
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
  report.ends = {end_of(0, killed_by(SIGKILL), Ending::kKilled)};
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
  report.ends = {end_of(0, killed_by(SIGTERM), Ending::kTold)};
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

TEST(ReportTest, WhatTheRecordsSayStandsBelowWhatTheLauncherKnows) {
  LaunchReport report = failure(failed_with(1, exited(3), "no luck"), {0});
  report.post_mortem = PostMortem{.sentence = "Rank 1 left.", .records = "/tmp/f00d.dump"};
  EXPECT_THAT(
      describe(report),
      HasSubstr("  | no luck\npeal: why: Rank 1 left.\npeal: see peal why /tmp/f00d.dump\n"));
  report.post_mortem = PostMortem{.problem = "there is no room"};
  EXPECT_THAT(describe(report), HasSubstr("  | no luck\npeal: there is no room\n"));
}

TEST(ReportTest, MissingOutputIsAFailureOfItsOwnThatNamesEachFile) {
  LaunchReport report;
  report.ends = {ProcessEnd{.rank = 0, .status = 0}};
  report.lost_output = {{.where = "logs/rank-0.out", .error = ENOSPC, .bytes = 17},
                        {.where = "standard output", .error = EIO, .bytes = 0}};
  EXPECT_TRUE(all_went_well(report));
  EXPECT_EQ(exit_code(report), 1);
  EXPECT_EQ(describe(report),
            "peal: cannot write logs/rank-0.out: No space left on device; 17 bytes of output are "
            "missing there\npeal: cannot write standard output: Input/output error\n");
}

TEST(ReportTest, TheRecordOfAnEndSaysWhoseDoingItWas) {
  using Fate = observe::RankEnd::Fate;
  const auto record = [](const ProcessEnd& end) { return record_of(end, {}); };
  EXPECT_EQ(record(end_of(2, exited(0))).fate, Fate::kEndedWell);
  EXPECT_EQ(record(end_of(2, killed_by(SIGKILL))).fate, Fate::kEndedBadly);
  EXPECT_EQ(record(end_of(2, killed_by(SIGKILL))).text, "was killed by SIGKILL");
  EXPECT_EQ(record(end_of(2, exited(3))).text, "ended with exit code 3");
  EXPECT_EQ(record(end_of(2, exited(3))).pid, 4713u);
  const auto told = record(end_of(2, killed_by(SIGTERM), Ending::kTold));
  EXPECT_EQ(told.fate, Fate::kEndedByLauncher);
  EXPECT_EQ(told.text, "was told to end by the launcher");
  EXPECT_EQ(record(end_of(2, exited(3), Ending::kTold)).text,
            "ended with exit code 3, when the launcher had told it to end");
  EXPECT_EQ(record(end_of(2, killed_by(SIGKILL), Ending::kKilled)).text,
            "was killed by the launcher");
  ProcessEnd stopped = end_of(2, killed_by(SIGTERM), Ending::kTold);
  stopped.stood_still = true;
  EXPECT_EQ(record(stopped).fate, Fate::kStopped);
  EXPECT_THAT(record(stopped).text, HasSubstr("stood still, stopped by a signal"));
}

TEST(ReportTest, AnUnknownSignalHasItsNumber) {
  EXPECT_THAT(describe(failure(end_of(0, killed_by(SIGRTMIN + 3)), {})),
              HasSubstr("signal " + std::to_string(SIGRTMIN + 3)));
}

}  // namespace
}  // namespace peal::launch
