#include "peal/launch/elastic/elastic_report.h"

#include <errno.h>
#include <signal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal::launch {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using How = ElasticEnd::How;

// Encodes wait statuses like waitpid(2).
constexpr int code(int number) { return number << 8; }

ElasticEnd end_of(int slot, int status, How how) {
  return {.host = "localhost",
          .worker = "localhost[" + std::to_string(slot) + "]",
          .pid = 4711 + slot,
          .status = status,
          .after = milliseconds(3210),
          .round = 2,
          .rank = slot,
          .how = how};
}

ElasticReport report_of(const std::vector<ElasticEnd>& ends, const std::string& why_badly = "") {
  ElasticReport report;
  report.rounds = {{1, 2, milliseconds(100)}, {2, 2, milliseconds(2000)}};
  report.ends = ends;
  report.why_badly = why_badly;
  report.after = milliseconds(9876);
  return report;
}

TEST(ElasticReportTest, AWorkerThatTheKernelKilledForItsMemoryIsDescribed) {
  ElasticEnd end = end_of(1, SIGKILL, How::kFailed);
  end.out_of_memory = OutOfMemory{64_MiB};
  EXPECT_EQ(
      describe(end),
      "worker localhost[1] (rank 1 of round 2, pid 4712) was killed by SIGKILL: out of memory "
      "(limit 64.0 MiB of its cgroup) after 3.2 s");
  EXPECT_EQ(as_process_end(end).out_of_memory, end.out_of_memory);
}

TEST(ElasticReportTest, AJobThatEndsWellHasCode0AlthoughWorkersFailed) {
  const ElasticReport report = report_of({end_of(0, SIGKILL, How::kFailed),
                                          end_of(1, code(1), How::kRemoved),
                                          end_of(2, 0, How::kWell)});
  EXPECT_EQ(exit_code(report), 0);
  EXPECT_EQ(describe(report),
            "peal: the job ended well after 9.9 s and 2 rounds; 1 worker failed on the way, and 1 "
            "worker was removed\n");
}

TEST(ElasticReportTest, AJobWithoutEventsIsSilent) {
  ElasticReport report = report_of({end_of(0, 0, How::kWell)});
  report.rounds.resize(1);
  EXPECT_EQ(describe(report), "");
}

TEST(ElasticReportTest, TheFirstFailureGivesTheCodeAndItsLastLines) {
  ElasticEnd first = end_of(1, code(7), How::kFailed);
  first.last_lines = {"out of luck"};
  const ElasticReport report =
      report_of({first, end_of(0, SIGABRT, How::kFailed)}, "nobody is left");
  EXPECT_EQ(exit_code(report), 7);
  EXPECT_EQ(describe(report),
            "peal: the elastic job failed after 9.9 s, in round 2: nobody is left\n"
            "peal: worker localhost[1] (rank 1 of round 2, pid 4712) ended with exit code 7 after "
            "3.2 s\n"
            "peal: worker localhost[0] (rank 0 of round 2, pid 4711) was killed by SIGABRT after "
            "3.2 s\n"
            "peal: the last lines of localhost[1]:\n"
            "  | out of luck\n");
}

TEST(ElasticReportTest, AFailureThatWasShownIsNotListedAgain) {
  ElasticEnd first = end_of(1, code(7), How::kFailed);
  first.is_shown = true;
  const ElasticReport report = report_of({first, end_of(0, code(3), How::kFailed)}, "no more");
  EXPECT_EQ(describe(report),
            "peal: the elastic job failed after 9.9 s, in round 2: no more\n"
            "peal: worker localhost[0] (rank 0 of round 2, pid 4711) ended with exit code 3 after "
            "3.2 s\n"
            "peal: localhost[1] wrote nothing\n");
  EXPECT_EQ(exit_code(report), 7);
}

TEST(ElasticReportTest, AFailureOfAnEarlierRoundIsNotTheCause) {
  ElasticEnd earlier = end_of(1, SIGKILL, How::kFailed);
  earlier.round = 1;
  ElasticReport report = report_of({earlier, end_of(0, code(3), How::kFailed)}, "no more");
  EXPECT_EQ(exit_code(report), 3);
  report.ends = {earlier};
  EXPECT_EQ(exit_code(report), 1);
}

TEST(ElasticReportTest, TheRecordsNameTheMainFailure) {
  ElasticReport report =
      report_of({end_of(0, code(3), How::kFailed), end_of(1, code(7), How::kFailed)}, "no more");
  report.post_mortem = PostMortem{.sentence = "Rank 1 left.", .causes = {1}, .records = "x.dump"};
  EXPECT_EQ(exit_code(report), 7);
  EXPECT_THAT(describe(report),
              AllOf(HasSubstr("peal: localhost[1] wrote nothing\n"),
                    HasSubstr("peal: why: Rank 1 left.\npeal: see peal why x.dump\n")));
}

TEST(ElasticReportTest, WithoutAFailedWorkerTheDriversReasonGivesCode1) {
  const ElasticReport report = report_of({end_of(0, code(3), How::kEnded)}, "too few workers");
  EXPECT_EQ(exit_code(report), 1);
  EXPECT_THAT(describe(report), HasSubstr("too few workers"));
}

TEST(ElasticReportTest, AProgramThatIsNotElasticIsNamed) {
  ElasticReport report = report_of({end_of(0, 0, How::kWell)});
  EXPECT_THAT(describe(report), Not(HasSubstr("elastic program")));
  report.rounds.clear();
  EXPECT_EQ(exit_code(report), 0);
  EXPECT_THAT(describe(report), HasSubstr("no worker has asked for a round, so each ran alone"));
}

TEST(ElasticReportTest, ASignalGivesItsCodeUnlessAllWorkersEndedWell) {
  ElasticReport report = report_of({end_of(0, SIGTERM, How::kEnded)});
  report.signal = SIGTERM;
  EXPECT_EQ(exit_code(report), 128 + SIGTERM);
  EXPECT_THAT(describe(report), HasSubstr("ended by SIGTERM after 9.9 s"));
  report.ends = {end_of(0, 0, How::kWell)};
  EXPECT_EQ(exit_code(report), 0);
}

TEST(ElasticReportTest, AProgramThatCannotRunHasTheCodeOfAShell) {
  ElasticReport report = report_of({}, "cannot start x");
  report.start_error = EACCES;
  EXPECT_EQ(exit_code(report), 126);
  report.start_error = ENOENT;
  EXPECT_EQ(exit_code(report), 127);
}

TEST(ElasticReportTest, MissingOutputIsAnErrorOfItsOwn) {
  ElasticReport report = report_of({end_of(0, 0, How::kWell)});
  report.lost_output = {{.where = "log", .error = ENOSPC, .bytes = 12}};
  EXPECT_EQ(exit_code(report), 1);
  EXPECT_THAT(describe(report),
              AllOf(HasSubstr("cannot write log: No space left on device"), HasSubstr("12 bytes")));
}

}  // namespace
}  // namespace peal::launch
