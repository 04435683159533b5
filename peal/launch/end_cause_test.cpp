#include "peal/launch/end_cause.h"

#include <signal.h>

#include <gtest/gtest.h>

namespace peal::launch {
namespace {

constexpr int kExited3 = 3 << 8;

LaunchReport report_of(ProcessEnd end) {
  LaunchReport report;
  report.ends = {{.rank = 0, .status = SIGTERM, .ended_by = EndedBy::kRequest}, std::move(end)};
  return report;
}

TEST(EndCauseTest, NamesAreReadBack) {
  for (const char* const name : {"program",
                                 "signal",
                                 "out_of_memory",
                                 "time_limit",
                                 "cancelled",
                                 "host_lost",
                                 "preempted",
                                 "not_started",
                                 "engine"}) {
    const auto cause = try_parse_cause(name);
    ASSERT_TRUE(cause.has_value()) << name;
    EXPECT_EQ(name_of(*cause), name);
  }
  EXPECT_EQ(try_parse_cause("bad_luck"), std::nullopt);
}

TEST(EndCauseTest, TheEndOfTheMainFailureIsTheCause) {
  EXPECT_EQ(cause_of(report_of({.rank = 1, .status = kExited3})), EndCause::kProgram);
  EXPECT_EQ(cause_of(report_of({.rank = 1, .status = SIGSEGV})), EndCause::kSignal);
  EXPECT_EQ(cause_of(report_of({.rank = 1, .status = SIGKILL, .out_of_memory = OutOfMemory{}})),
            EndCause::kOutOfMemory);
  EXPECT_EQ(cause_of(report_of(
                {.rank = 1, .status = kExited3, .container_start = ContainerStart::kFailed})),
            EndCause::kNotStarted);
  EXPECT_EQ(cause_of(report_of({.rank = 1, .status = SIGKILL, .lost = "no sign of life"})),
            EndCause::kHostLost);
}

TEST(EndCauseTest, AJobThatEndedWellHasNoCause) {
  LaunchReport report;
  report.ends = {{.rank = 0, .status = 0}};
  EXPECT_EQ(cause_of(report), std::nullopt);
}

TEST(EndCauseTest, WhatTheLauncherDidGoesBeforeTheEndsOfRanks) {
  LaunchReport report = report_of({.rank = 1, .status = kExited3});
  report.time_limit = Timeout(5);
  EXPECT_EQ(cause_of(report), EndCause::kTimeLimit);
  report = report_of({.rank = 1, .status = kExited3});
  report.was_cancelled = true;
  EXPECT_EQ(cause_of(report), EndCause::kCancelled);
  report.guard_lost = true;
  EXPECT_EQ(cause_of(report), EndCause::kEngine);
  report.start_failure = StartFailure{};
  EXPECT_EQ(cause_of(report), EndCause::kNotStarted);
}

TEST(EndCauseTest, ASignalToTheLauncherOrOneThatAllRanksHandledIsACancellation) {
  LaunchReport report;
  report.signal = SIGTERM;
  report.ends = {{.rank = 0, .status = SIGTERM, .ended_by = EndedBy::kRequest}};
  EXPECT_EQ(cause_of(report), EndCause::kCancelled);
  report.signal = 0;
  report.ends = {{.rank = 0, .status = (kSignalBase + SIGINT) << 8}};
  EXPECT_EQ(cause_of(report), EndCause::kCancelled);
}

TEST(EndCauseTest, MissingOutputIsAFailureOfTheLauncher) {
  LaunchReport report;
  report.ends = {{.rank = 0, .status = 0}};
  report.lost_output = {{.where = "rank-0.out", .error = ENOSPC, .bytes = 1}};
  EXPECT_EQ(cause_of(report), EndCause::kEngine);
}

}  // namespace
}  // namespace peal::launch
