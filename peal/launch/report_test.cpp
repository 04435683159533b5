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
using testing::StartsWith;

// Encodes wait statuses like waitpid(2).
constexpr int exited(int code) { return code << 8; }
constexpr int killed_by(int signal) { return signal; }

ProcessEnd end_of(Rank rank, int status, EndedBy ended_by = EndedBy::kItself) {
  return {.rank = rank,
          .pid = 4711 + rank,
          .status = status,
          .after = milliseconds(3210),
          .ended_by = ended_by};
}

ProcessEnd failed_with(Rank rank, int status, const std::string& last_line) {
  ProcessEnd end = end_of(rank, status);
  end.last_lines = {last_line};
  return end;
}

/// `first` failed, and then the launcher's SIGTERM ended the others.
LaunchReport failure(const ProcessEnd& first, const std::vector<Rank>& others) {
  LaunchReport report;
  report.ends = {first};
  for (const Rank rank : others) {
    report.ends.push_back(end_of(rank, killed_by(SIGTERM), EndedBy::kRequest));
  }
  return report;
}

LaunchReport failures(const std::vector<ProcessEnd>& ends) {
  LaunchReport report;
  report.ends = ends;
  return report;
}

/// The same, with a diagnosis from records.
LaunchReport failures(const std::vector<ProcessEnd>& ends,
                      const std::vector<Rank>& causes,
                      const std::vector<Rank>& victims) {
  LaunchReport report = failures(ends);
  report.post_mortem = PostMortem{.causes = causes, .victims = victims};
  return report;
}

constexpr const char* kLostRank1 = "peer_lost: rank 1 (pid 4712 on here) has left the group";

TEST(ReportTest, ASuccessfulLaunchHasNoText) {
  LaunchReport report;
  report.ends = {end_of(0, exited(0)), end_of(1, exited(0))};
  EXPECT_EQ(exit_code(report), 0);
  EXPECT_EQ(describe(report), "");
}

TEST(ReportTest, ADeathByASignalIsReportedWithTheLastLines) {
  ProcessEnd end = end_of(1, killed_by(SIGSEGV));
  end.last_lines = {"loss 0.25", "step 17"};
  const LaunchReport report = failure(end, {0});
  EXPECT_EQ(exit_code(report), 128 + SIGSEGV);
  EXPECT_EQ(describe(report),
            "peal: rank 1 (pid 4712) was killed by SIGSEGV after 3.2 s; rank 0 was ended by the "
            "launcher\n"
            "peal: the last lines of rank 1:\n  | loss 0.25\n  | step 17\n");
}

TEST(ReportTest, AnExitCodeIsPassedOn) {
  const LaunchReport report = failure(end_of(2, exited(3)), {3, 0, 1});
  EXPECT_EQ(exit_code(report), 3);
  EXPECT_EQ(describe(report),
            "peal: rank 2 (pid 4713) ended with exit code 3 after 3.2 s; ranks 0, 1 and 3 were "
            "ended by the launcher\npeal: rank 2 wrote nothing\n");
}

TEST(ReportTest, ManyRanksAreCounted) {
  const LaunchReport report = failure(end_of(9, exited(1)), {0, 1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_THAT(describe(report), HasSubstr("; 9 ranks were ended by the launcher"));
}

TEST(ReportTest, ARankThatEndedWithZeroIsNotMentioned) {
  const LaunchReport report = failures(
      {end_of(0, exited(0)), failed_with(1, exited(1), "out of luck"), end_of(2, exited(0))});
  EXPECT_EQ(describe(report),
            "peal: rank 1 (pid 4712) ended with exit code 1 after 3.2 s\n"
            "peal: the last lines of rank 1:\n  | out of luck\n");
}

TEST(ReportTest, ACauseThatTheLauncherEndedIsNamed) {
  const ProcessEnd stopped = end_of(1, killed_by(SIGTERM), EndedBy::kRequest);
  const LaunchReport one = failures({failed_with(0, exited(1), "timeout"), stopped}, {1}, {});
  EXPECT_THAT(describe(one),
              HasSubstr("; rank 1 was ended by the launcher; the likely cause is rank 1\n"));
  const LaunchReport two = failures(
      {failed_with(0, exited(1), "timeout"), failed_with(2, exited(1), "timeout"), stopped},
      {1},
      {});
  EXPECT_THAT(describe(two),
              StartsWith("peal: 2 ranks failed; rank 1 was ended by the launcher; the likely cause "
                         "is rank 1:\n  rank 0 (pid 4711) ended with exit code 1"));
}

TEST(ReportTest, AFailedCauseIsNamedBeforeOneThatTheLauncherEnded) {
  const LaunchReport report = failures(
      {failed_with(0, exited(1), "deadlock"), end_of(1, killed_by(SIGTERM), EndedBy::kRequest)},
      {0, 1},
      {});
  EXPECT_THAT(describe(report), Not(HasSubstr("likely cause")));
}

TEST(ReportTest, VictimsAreListedAfterTheCauseAndApartFromRanksThatTheLauncherEnded) {
  const LaunchReport report = failures({failed_with(0, exited(1), kLostRank1),
                                        failed_with(1, exited(42), "out of luck"),
                                        end_of(2, killed_by(SIGTERM), EndedBy::kRequest)},
                                       {1},
                                       {0, 2});
  EXPECT_EQ(exit_code(report), 42);
  EXPECT_EQ(describe(report),
            "peal: 2 ranks failed, the likely cause first; rank 2 was ended by the launcher:\n"
            "  rank 1 (pid 4712) ended with exit code 42 after 3.2 s\n"
            "  rank 0 failed after that, having lost another rank\n"
            "peal: the last lines of rank 1:\n  | out of luck\n");
}

TEST(ReportTest, TheMainFailureIsTheRankThatTheRecordsName) {
  const std::string aborted = "aborted: the group world was aborted by rank 1: no luck";
  const LaunchReport report =
      failures({failed_with(0, exited(1), aborted), failed_with(1, exited(3), aborted)}, {1}, {0});
  EXPECT_EQ(exit_code(report), 3);
  EXPECT_THAT(
      describe(report),
      HasSubstr("the likely cause first:\n  rank 1 (pid 4712) ended with exit code 3 after"));
}

TEST(ReportTest, ACauseThatDidNotFailByItselfIsNotTheMainFailure) {
  const LaunchReport report = failures({failed_with(0, exited(1), kLostRank1),
                                        end_of(1, exited(0)),
                                        failed_with(2, exited(4), "no luck")},
                                       {1},
                                       {0});
  EXPECT_EQ(exit_code(report), 4);
}

TEST(ReportTest, IfAllFailedRanksAreVictimsNoneIsNamedAsTheCause) {
  const LaunchReport report = failures({failed_with(0, exited(1), kLostRank1),
                                        end_of(1, exited(0)),
                                        failed_with(2, exited(1), kLostRank1)},
                                       {1},
                                       {0, 2});
  EXPECT_THAT(describe(report), testing::StartsWith("peal: 2 ranks failed:\n  rank 0 (pid"));
}

TEST(ReportTest, TheErrorsOfVictimsAreNotShown) {
  const std::string uncaught = "terminate called after throwing an instance of 'std::bad_alloc'";
  const std::string lost = "terminate called after throwing an instance of 'peal::Error'";
  const std::vector<ProcessEnd> ends = {failed_with(0, killed_by(SIGABRT), lost),
                                        failed_with(1, killed_by(SIGABRT), uncaught),
                                        failed_with(2, killed_by(SIGABRT), uncaught)};
  const std::string text = describe(failures(ends, {1}, {0}));
  EXPECT_THAT(text,
              HasSubstr("peal: ranks 1 and 2 ended with the same error; the last lines of rank 1"));
  EXPECT_THAT(text, Not(HasSubstr(lost)));
  EXPECT_THAT(describe(failures(ends, {1}, {})), HasSubstr(lost));
}

TEST(ReportTest, ManyVictimsAreCounted) {
  std::vector<ProcessEnd> ends;
  std::vector<Rank> victims;
  for (Rank rank = 0; rank < 61; ++rank) {
    ends.push_back(failed_with(rank, exited(1), kLostRank1));
    victims.push_back(rank);
  }
  ends.push_back(end_of(61, exited(3)));
  ends.push_back(end_of(62, killed_by(SIGSEGV)));
  EXPECT_EQ(describe(failures(ends, {62}, victims)),
            "peal: 63 ranks failed, the likely cause first:\n"
            "  rank 62 (pid 4773) was killed by SIGSEGV after 3.2 s\n"
            "  rank 61 (pid 4772) ended with exit code 3 after 3.2 s\n"
            "  61 ranks failed after that, having lost another rank\n"
            "peal: rank 62 wrote nothing\n");
}

TEST(ReportTest, ManyFailuresAreEightLinesAndANumber) {
  std::vector<ProcessEnd> ends;
  std::vector<Rank> ranks;
  for (Rank rank = 0; rank < 64; ++rank) {
    ends.push_back(failed_with(rank, exited(1), "no luck"));
    ranks.push_back(rank);
  }
  for (const LaunchReport& report : {failures(ends), failures(ends, {}, ranks)}) {
    const std::string text = describe(report);
    EXPECT_THAT(text, HasSubstr("  rank 0 (pid 4711) ended with exit code 1"));
    EXPECT_THAT(text, HasSubstr("  rank 7 (pid 4718) ended with exit code 1"));
    EXPECT_THAT(text, HasSubstr("\n  and 56 more\npeal: the last lines of rank 0:\n"));
    EXPECT_THAT(text, Not(HasSubstr("rank 8")));
  }
}

TEST(ReportTest, WithoutACauseTheMainFailureIsTheFirstCrashOrErrorOfARankThatIsNotAVictim) {
  struct Case {
    std::vector<ProcessEnd> ends;
    std::vector<Rank> victims;
    Rank main;
  };
  const std::vector<Case> cases = {
      {{failed_with(0, exited(1), "no luck"), failed_with(1, exited(2), "no luck")}, {}, 0},
      {{failed_with(2, exited(1), kLostRank1), failed_with(0, exited(1), kLostRank1)}, {0, 2}, 2},
      // An uncaught error ends by abort(), also on a victim.
      {{failed_with(0, killed_by(SIGABRT), kLostRank1),
        failed_with(1, killed_by(SIGABRT), "no luck")},
       {0},
       1},
      {{failed_with(0, killed_by(SIGABRT), "no luck"), failed_with(1, exited(3), "no luck")},
       {},
       0},
      {{failed_with(0, exited(1), "failed"), end_of(1, killed_by(SIGKILL))}, {}, 1},
      {{end_of(0, exited(0)), failed_with(1, exited(1), kLostRank1)}, {1}, 1},
  };
  for (const Case& each : cases) {
    const LaunchReport report = failures(each.ends, {}, each.victims);
    ASSERT_NE(main_failure(report), nullptr);
    EXPECT_EQ(main_failure(report)->rank, each.main) << describe(report);
  }
  const LaunchReport well = failures({end_of(0, exited(0))});
  EXPECT_EQ(main_failure(well), nullptr);
}

TEST(ReportTest, ARankThatFailedAfterTheRequestToEndIsReportedSeparately) {
  LaunchReport report = failure(end_of(1, exited(1)), {});
  report.ends.push_back(end_of(0, exited(0), EndedBy::kRequest));
  report.ends.push_back(end_of(2, exited(128 + SIGTERM), EndedBy::kRequest));
  report.ends.push_back(end_of(3, killed_by(SIGSEGV), EndedBy::kRequest));
  EXPECT_EQ(exit_code(report), 1);
  EXPECT_THAT(describe(report), HasSubstr("; ranks 0 and 2 were ended by the launcher\n"));
  EXPECT_THAT(describe(report),
              HasSubstr("peal: rank 3 (pid 4714) was killed by SIGSEGV after 3.2 s, after the "
                        "launcher asked it to end\n"));
}

TEST(ReportTest, ManyFailuresAfterTheRequestToEndAreEightLinesAndANumber) {
  LaunchReport report = failure(failed_with(64, exited(3), "no luck"), {});
  for (Rank rank = 0; rank < 64; ++rank) {
    report.ends.push_back(end_of(rank, exited(1), EndedBy::kRequest));
  }
  const std::string text = describe(report);
  EXPECT_THAT(text,
              HasSubstr("after 3.2 s\npeal: 64 ranks failed after the launcher asked them to end:\n"
                        "  rank 0 (pid 4711) ended with exit code 1 after 3.2 s\n"));
  EXPECT_THAT(text,
              HasSubstr("  rank 7 (pid 4718) ended with exit code 1 after 3.2 s\n"
                        "  and 56 more\npeal: the last lines of rank 64:\n"));
  EXPECT_THAT(text, Not(HasSubstr("rank 8")));
}

TEST(ReportTest, AKilledRankIsNamedOnce) {
  LaunchReport report = failure(end_of(1, exited(1)), {});
  report.ends.push_back(end_of(0, killed_by(SIGKILL), EndedBy::kKill));
  report.grace = milliseconds(1500);
  EXPECT_THAT(describe(report), Not(HasSubstr("rank 0 was ended by the launcher")));
  EXPECT_THAT(describe(report),
              HasSubstr("rank 0 was killed, not having ended within 1.5 s (--grace)\n"));
  report.cut_short = SIGINT;
  EXPECT_THAT(describe(report), HasSubstr("rank 0 was killed, as requested by SIGINT\n"));
}

TEST(ReportTest, SigkillFromOutsideHintsAtMemory) {
  EXPECT_THAT(describe(failure(end_of(0, killed_by(SIGKILL)), {})), HasSubstr("memory"));
}

TEST(ReportTest, OutOfMemoryIsNamedWithTheLimit) {
  ProcessEnd end = end_of(0, killed_by(SIGKILL));
  end.out_of_memory = OutOfMemory{2048_MiB};
  EXPECT_EQ(how_it_ended(end),
            "was killed by SIGKILL: out of memory (limit 2.0 GiB of its cgroup)");
  EXPECT_EQ(record_of(end, {}).text, how_it_ended(end));
  end.out_of_memory = OutOfMemory{};
  EXPECT_EQ(how_it_ended(end), "was killed by SIGKILL: out of memory (of the machine)");
}

TEST(ReportTest, AnEventOfAGuardTellsWhetherMemoryRanOut) {
  EXPECT_EQ(out_of_memory(EndDetail{}), std::nullopt);
  EXPECT_EQ(out_of_memory(EndDetail{.out_of_memory = 1}), OutOfMemory{});
  EXPECT_EQ(out_of_memory(EndDetail{.out_of_memory = 1, .memory_limit = 5}), OutOfMemory{Bytes(5)});
}

TEST(ReportTest, ASignalToTheLauncherIsNotAFailureOfARank) {
  LaunchReport report;
  report.signal = SIGINT;
  report.after = milliseconds(1000);
  report.ends = {end_of(0, killed_by(SIGINT), EndedBy::kRequest),
                 end_of(1, killed_by(SIGINT), EndedBy::kRequest)};
  EXPECT_EQ(exit_code(report), 128 + SIGINT);
  EXPECT_EQ(describe(report), "peal: ended by SIGINT after 1.0 s\n");
}

TEST(ReportTest, RanksThatEndWithZeroAfterASignalGiveZero) {
  LaunchReport report;
  report.signal = SIGTERM;
  report.ends = {end_of(0, exited(0))};
  EXPECT_EQ(exit_code(report), 0);
}

TEST(ReportTest, KilledRanksThatIgnoredTheSignalGiveTheCodeOfTheSignal) {
  LaunchReport report;
  report.signal = SIGTERM;
  report.ends = {end_of(0, killed_by(SIGKILL), EndedBy::kKill)};
  EXPECT_EQ(exit_code(report), 128 + SIGTERM);
}

TEST(ReportTest, RanksThatSaveTheirWorkAfterASignalToTheLauncherHaveHandledIt) {
  LaunchReport report;
  report.signal = SIGTERM;
  report.after = milliseconds(1000);
  report.ends = {end_of(0, exited(128 + SIGTERM), EndedBy::kRequest),
                 end_of(1, exited(0), EndedBy::kRequest)};
  EXPECT_EQ(handled_signal(report), SIGTERM);
  EXPECT_EQ(exit_code(report), 128 + SIGTERM);
  EXPECT_EQ(describe(report), "peal: ended by SIGTERM after 1.0 s\n");
  report.ends[1] = end_of(1, killed_by(SIGTERM), EndedBy::kRequest);
  EXPECT_EQ(handled_signal(report), 0);
  report.ends[1] = end_of(1, exited(1), EndedBy::kRequest);
  EXPECT_EQ(handled_signal(report), 0);
}

TEST(ReportTest, RanksThatAllEndWithTheCodeOfASignalHaveHandledItAndHaveNotFailed) {
  LaunchReport report;
  report.after = milliseconds(1000);
  report.ends = {end_of(1, exited(128 + SIGINT)), end_of(0, exited(128 + SIGINT))};
  EXPECT_EQ(handled_signal(report), SIGINT);
  EXPECT_EQ(main_failure(report), nullptr);
  EXPECT_EQ(exit_code(report), 128 + SIGINT);
  EXPECT_EQ(describe(report),
            "peal: every rank ended with exit code 130 (128 + SIGINT) after 1.0 s\n");
}

TEST(ReportTest, RanksHaveFailedUnlessAllEndByThemselvesWithTheCodeOfTheSameSignal) {
  const ProcessEnd stopped = end_of(0, exited(128 + SIGTERM));
  for (const ProcessEnd& other : {end_of(1, exited(0)),
                                  end_of(1, exited(128 + SIGINT)),
                                  end_of(1, killed_by(SIGTERM)),
                                  end_of(1, exited(128 + SIGTERM), EndedBy::kRequest)}) {
    const LaunchReport report = failures({stopped, other});
    EXPECT_EQ(handled_signal(report), 0);
    EXPECT_NE(main_failure(report), nullptr);
  }
  EXPECT_EQ(handled_signal(failures({end_of(0, exited(128 + SIGSEGV))})), 0);
  EXPECT_EQ(handled_signal(failures({end_of(0, killed_by(SIGTERM))})), 0);
  EXPECT_EQ(handled_signal(failures({end_of(0, exited(0))})), 0);
}

TEST(ReportTest, AProgramThatCannotBeExecutedGivesTheCodeOfAShell) {
  LaunchReport report;
  report.start_failure = StartFailure{.rank = 0, .program = "./train", .error = ENOEXEC};
  EXPECT_EQ(exit_code(report), 126);
  EXPECT_THAT(describe(report), HasSubstr("#!/bin/sh"));
  report.start_failure->error = ENOENT;
  EXPECT_EQ(exit_code(report), 127);
  EXPECT_THAT(describe(report), HasSubstr("interpreter"));
}

TEST(ReportTest, AReportWithoutAReaderIsEmpty) {
  LaunchReport report;
  report.output_closed = true;
  report.ends = {end_of(0, killed_by(SIGTERM), EndedBy::kRequest)};
  EXPECT_EQ(exit_code(report), 128 + SIGPIPE);
  EXPECT_EQ(describe(report), "");
}

TEST(ReportTest, ALostGuardAndSurvivorsAreReported) {
  LaunchReport report;
  report.guard_lost = true;
  report.survivors = 2;
  EXPECT_EQ(exit_code(report), 128 + SIGKILL);
  EXPECT_THAT(describe(report), HasSubstr("guards the ranks was killed"));
  EXPECT_THAT(describe(report), HasSubstr("2 processes"));
}

TEST(ReportTest, TheDiagnosisFollowsTheLastLines) {
  LaunchReport report = failure(failed_with(1, exited(3), "no luck"), {0});
  report.post_mortem = PostMortem{.sentence = "Rank 1 left.", .records = "/tmp/f00d.dump"};
  EXPECT_THAT(
      describe(report),
      HasSubstr("  | no luck\npeal: why: Rank 1 left.\npeal: see peal why /tmp/f00d.dump\n"));
  report.post_mortem = PostMortem{.problem = "no room"};
  EXPECT_THAT(describe(report), HasSubstr("  | no luck\npeal: no room\n"));
}

TEST(ReportTest, MissingOutputIsAFailureThatNamesEachFile) {
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

TEST(ReportTest, TheRecordOfAnEndSaysWhetherTheLauncherEndedTheRank) {
  using State = observe::RankEnd::State;
  const auto record = [](const ProcessEnd& end) { return record_of(end, {}); };
  EXPECT_EQ(record(end_of(2, exited(0))).state, State::kEndedWell);
  EXPECT_EQ(record(end_of(2, killed_by(SIGKILL))).state, State::kKilled);
  EXPECT_EQ(record(end_of(2, killed_by(SIGKILL))).text, "was killed by SIGKILL");
  EXPECT_EQ(record(end_of(2, exited(3))).text, "ended with exit code 3");
  EXPECT_EQ(record(end_of(2, exited(3))).pid, 4713u);
  const auto asked = record(end_of(2, killed_by(SIGTERM), EndedBy::kRequest));
  EXPECT_EQ(asked.state, State::kEndedByLauncher);
  EXPECT_EQ(asked.text, "was ended by the launcher");
  EXPECT_EQ(record(end_of(2, exited(3), EndedBy::kRequest)).text,
            "ended with exit code 3, after the launcher asked it to end");
  EXPECT_EQ(record(end_of(2, killed_by(SIGKILL), EndedBy::kKill)).text,
            "was killed by the launcher");
  ProcessEnd stopped = end_of(2, killed_by(SIGTERM), EndedBy::kRequest);
  stopped.was_stopped = true;
  EXPECT_EQ(record(stopped).state, State::kEndedWhileStopped);
  EXPECT_THAT(record(stopped).text, HasSubstr("was stopped by a signal"));
}

TEST(ReportTest, AnUnknownSignalIsShownAsANumber) {
  EXPECT_THAT(describe(failure(end_of(0, killed_by(SIGRTMIN + 3)), {})),
              HasSubstr("signal " + std::to_string(SIGRTMIN + 3)));
}

}  // namespace
}  // namespace peal::launch
