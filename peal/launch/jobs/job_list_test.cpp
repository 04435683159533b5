#include "peal/launch/jobs/job_list.h"

#include <signal.h>

#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/idle_child.h"
#include "peal/base/testing/temporary_folder.h"

namespace peal::launch::jobs {
namespace {

using std::chrono::hours;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;
using testing::UnorderedElementsAre;

class JobListTest : public testing::Test {
 protected:
  JobFolder submit(const std::string& name, WallTime at) const {
    const Job job{.name = name, .roles = {{.name = "a", .nodes = {1, 3}, .command = {"true"}}}};
    const JobFolder folder =
        make_job_folder(directory(), {.job = job, .submission = {.runner = "local"}});
    Submission submission = read_submission(folder);
    submission.submitted_at = at;
    write(folder, submission);
    return folder;
  }

  JobFolder submit_ended(const std::string& name, WallTime at) const {
    const JobFolder folder = submit(name, at);
    write(folder, JobEnd{.state = JobState::kSucceeded, .exit_code = 0, .ended_at = at});
    return folder;
  }

  std::vector<std::string> ids() const {
    std::vector<std::string> ids;
    for (const JobEntry& entry : list_jobs(directory())) ids.push_back(entry.id);
    return ids;
  }

  const std::filesystem::path& directory() const { return folder_.path(); }

  const WallTime now_ = wall_time_now();

 private:
  TemporaryFolder folder_;
};

TEST_F(JobListTest, JobsAreListedNewestFirst) {
  const JobFolder middle = submit("b", now_ - hours(2));
  const JobFolder oldest = submit("a", now_ - hours(3));
  const JobFolder newest = submit("c", now_ - hours(1));
  EXPECT_THAT(ids(), ElementsAre(newest.id(), middle.id(), oldest.id()));
}

TEST_F(JobListTest, WithoutAFolderThereAreNoJobs) {
  EXPECT_THAT(list_jobs(directory() / "missing"), IsEmpty());
}

TEST_F(JobListTest, AnEntryHasTheStateTheNodesAndTheTimes) {
  const JobFolder folder = submit_ended("MNIST", now_ - hours(2));
  const JobEntry expected{
      .id = folder.id(),
      .name = "MNIST",
      .runner = "local",
      .status = {.id = folder.id(), .state = JobState::kSucceeded, .exit_code = 0},
      .has_launcher = true,
      .nodes = 3,
      .submitted_at = now_ - hours(2),
      .ended_at = now_ - hours(2)};
  EXPECT_THAT(list_jobs(directory()), ElementsAre(expected));
}

TEST_F(JobListTest, AJobThatOnlyItsEngineKnowsIsMarked) {
  const JobFolder folder = submit("a", now_);
  Submission submission = read_submission(folder);
  submission.runner = "kubernetes";
  submission.launcher.reset();
  write(folder, submission);
  const JobEntry entry = list_jobs(directory()).at(0);
  EXPECT_FALSE(entry.has_launcher);
  EXPECT_EQ(entry.status.state, JobState::kUnknown);
}

TEST_F(JobListTest, AnEngineMayHaveAJobWhoseSubmissionWasKilled) {
  IdleChild killed;
  const JobFolder folder = submit("a", now_ - hours(9));
  Submission submission = read_submission(folder);
  submission.runner = "kubernetes";
  submission.launcher = process_record(killed.pid());
  write(folder, submission);
  killed.end();
  const JobEntry entry = list_jobs(directory()).at(0);
  EXPECT_FALSE(entry.has_launcher);
  EXPECT_EQ(entry.status.state, JobState::kUnknown);
  EXPECT_THAT(remove_ended_jobs(directory(), hours(1), now_), IsEmpty());
}

TEST_F(JobListTest, ADamagedFolderIsListedAsSuchAndKept) {
  const JobFolder damaged = submit_ended("a", now_ - hours(100));
  const JobFolder fine = submit("b", now_ - hours(200));
  std::ofstream(damaged.submission_file()) << "{}";
  const std::vector<JobEntry> jobs = list_jobs(directory());
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[0].id, damaged.id());
  EXPECT_THAT(jobs[0].damage, StartsWith(damaged.submission_file() + " is damaged"));
  EXPECT_EQ(jobs[0].status.state, JobState::kUnknown);
  EXPECT_EQ(jobs[1].damage, "");
  EXPECT_THAT(remove_ended_jobs(directory(), hours(0), now_ + hours(1000)), IsEmpty());
  EXPECT_THAT(ids(), UnorderedElementsAre(damaged.id(), fine.id()));
}

TEST_F(JobListTest, OnlyJobsThatEndedLongAgoAreRemoved) {
  const JobFolder old = submit_ended("a", now_ - hours(3));
  const JobFolder young = submit_ended("b", now_ - hours(1));
  const JobFolder active = submit("c", now_ - hours(9));
  std::filesystem::create_directory(old.attempt_directory(0));
  std::ofstream(old.rank_log(0, 0, Channel::kOut)) << "x";
  EXPECT_THAT(remove_ended_jobs(directory(), hours(2), now_), ElementsAre(old.id()));
  EXPECT_FALSE(std::filesystem::exists(old.path()));
  EXPECT_THAT(ids(), UnorderedElementsAre(young.id(), active.id()));
}

TEST_F(JobListTest, AJobWhoseLauncherWasKilledHasEndedWithItsLastState) {
  IdleChild launcher;
  const JobFolder folder = submit("a", now_ - hours(9));
  write(folder,
        LauncherState{.launcher = process_record(launcher.pid()),
                      .state = JobState::kRunning,
                      .written_at = now_ - hours(3)});
  EXPECT_THAT(remove_ended_jobs(directory(), hours(2), now_), IsEmpty());
  launcher.end();
  EXPECT_EQ(list_jobs(directory()).at(0).ended_at, now_ - hours(3));
  EXPECT_THAT(remove_ended_jobs(directory(), hours(4), now_), IsEmpty());
  EXPECT_THAT(remove_ended_jobs(directory(), hours(2), now_), ElementsAre(folder.id()));
}

TEST_F(JobListTest, FoldersOfKilledSubmissionsAreRemovedLater) {
  const std::filesystem::path left = directory() / ".new.abcdef";
  std::filesystem::create_directory(left);
  remove_ended_jobs(directory(), hours(1), now_);
  EXPECT_TRUE(std::filesystem::exists(left));
  remove_ended_jobs(directory(), hours(1), now_ + hours(2));
  EXPECT_FALSE(std::filesystem::exists(left));
}

}  // namespace
}  // namespace peal::launch::jobs
