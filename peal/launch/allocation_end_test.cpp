#include "peal/launch/allocation_end.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "peal/base/testing/scoped_variable.h"
#include "peal/base/testing/temporary_folder.h"

namespace peal::launch {
namespace {

using namespace std::chrono_literals;

TEST(AllocationEndTest, TheTimeLeftIsReadAsSlurmPrintsIt) {
  EXPECT_EQ(parse_time_left("0:30\n"), 30s);
  EXPECT_EQ(parse_time_left("59:59\n"), 59min + 59s);
  EXPECT_EQ(parse_time_left("2:03:04"), 2h + 3min + 4s);
  EXPECT_EQ(parse_time_left("1-02:03:04\n"), 26h + 3min + 4s);
  EXPECT_EQ(parse_time_left("365-00:00:00\n"), 24h * 365);
}

TEST(AllocationEndTest, TheFirstComponentThatEndsCounts) {
  EXPECT_EQ(parse_time_left("2:00:00\n1:00:00\nUNLIMITED\n"), 1h);
}

TEST(AllocationEndTest, OtherTextsAreNotATime) {
  for (const char* text :
       {"", "\n", "UNLIMITED\n", "INVALID", "NOT_SET", "30", "1-", "-1:00", "a:b", "1:2:3:4"}) {
    EXPECT_EQ(parse_time_left(text), std::nullopt) << text;
  }
}

TEST(AllocationEndTest, AJobIsPreemptedOnceSlurmShowsTheTime) {
  constexpr auto kBefore =
      "JobId=7 JobState=RUNNING PreemptEligibleTime=2026-11-28T19:51:32 PreemptTime=None\n";
  constexpr auto kAfter = "JobId=8 JobState=RUNNING PreemptTime=2026-11-28T19:51:33 Priority=1\n";
  constexpr auto kOfHetJob = "JobId=9 HetJobId=7 JobState=RUNNING PreemptTime=2026-11-28T19:51:33";
  EXPECT_FALSE(shows_preemption(kBefore, "7"));
  EXPECT_TRUE(shows_preemption(kAfter, "8"));
  EXPECT_FALSE(shows_preemption(std::string(kBefore) + kAfter, "7")) << "another task of the array";
  EXPECT_TRUE(shows_preemption(std::string(kBefore) + kOfHetJob, "7"));
  EXPECT_FALSE(shows_preemption("", "7"));
}

TEST(AllocationEndTest, WhenSlurmEndsTheJobThereIsNothingToWaitFor) {
  EXPECT_FALSE(
      shows_preemption("JobId=7 JobState=COMPLETING PreemptTime=2026-11-28T19:51:33", "7"));
}

TEST(AllocationEndTest, ScontrolIsAskedForTheJobOfTheAllocation) {
  const TemporaryFolder folder;
  const std::filesystem::path scontrol = folder.path() / "scontrol";
  std::ofstream(scontrol) << "#!/bin/sh\n"
                             "[ \"$*\" = 'show job --oneliner 7' ] || exit 1\n"
                             "echo JobId=7 JobState=RUNNING PreemptTime=2026-11-28T19:51:33\n";
  std::filesystem::permissions(scontrol, std::filesystem::perms::owner_all);
  const ScopedVariable path("PATH", folder.path().string() + ":/usr/bin:/bin");
  EXPECT_TRUE(is_preempted(fixed_environment({{"SLURM_JOB_ID", "7"}})));
}

TEST(AllocationEndTest, AScontrolThatFailsIsAnError) {
  const TemporaryFolder folder;
  const std::filesystem::path scontrol = folder.path() / "scontrol";
  std::ofstream(scontrol) << "#!/bin/sh\necho no controller >&2; exit 1\n";
  std::filesystem::permissions(scontrol, std::filesystem::perms::owner_all);
  const ScopedVariable path("PATH", folder.path().string() + ":/usr/bin:/bin");
  try {
    is_preempted(fixed_environment({{"SLURM_JOB_ID", "8"}}));
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(),
              "`scontrol show job --oneliner 8` has failed: exit code 1: no controller");
  }
}

TEST(AllocationEndTest, OutsideOfSlurmNothingIsAsked) {
  EXPECT_EQ(time_left_of_allocation(fixed_environment({})), std::nullopt);
  EXPECT_FALSE(is_preempted(fixed_environment({})));
}

}  // namespace
}  // namespace peal::launch
