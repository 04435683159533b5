#include "peal/launch/jobs/job_folder.h"

#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/error_of.h"
#include "peal/base/testing/scoped_variable.h"
#include "peal/base/testing/temporary_folder.h"
#include "peal/launch/jobs/job_id.h"

namespace peal::launch::jobs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using testing::UnorderedElementsAre;

Job example_job() {
  return {.name = "MNIST",
          .roles = {{.name = "master", .ranks_per_node = 2, .command = {"train", "--lr=0.1"}},
                    {.name = "worker", .nodes = {1, 3}, .command = {"train"}}},
          .env = {{"GREETING", "a \"b\"\n$c"}}};
}

unsigned mode_of(const std::filesystem::path& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 0777U;
}

TEST(JobFolderTest, TheDirectoryComesFromTheEnvironment) {
  const ScopedVariable home("HOME", "/home/ann");
  const ScopedVariable state("XDG_STATE_HOME", "");
  const ScopedVariable own("PEAL_JOBS_DIR", "");
  EXPECT_EQ(jobs_directory(), "/home/ann/.local/state/peal/jobs");
  {
    const ScopedVariable relative("XDG_STATE_HOME", "state");  // the standard says: ignore
    EXPECT_EQ(jobs_directory(), "/home/ann/.local/state/peal/jobs");
  }
  const ScopedVariable other_state("XDG_STATE_HOME", "/var/ann");
  EXPECT_EQ(jobs_directory(), "/var/ann/peal/jobs");
  const ScopedVariable other("PEAL_JOBS_DIR", "/shared/jobs");
  EXPECT_EQ(jobs_directory(), "/shared/jobs");
}

TEST(JobFolderTest, ARelativeDirectoryIsRefused) {
  const ScopedVariable own("PEAL_JOBS_DIR", "jobs");
  EXPECT_THAT(usage_error_of([] { jobs_directory(); }), StartsWith("PEAL_JOBS_DIR=jobs is not"));
}

TEST(JobFolderTest, ANewFolderHasTheJobTheSubmissionAndTheSecret) {
  const TemporaryFolder folder;
  const JobFolder made = make_job_folder(folder.path() / "a/b",
                                         {.job = example_job(),
                                          .submission = {.runner = "local",
                                                         .directory = "/home/ann",
                                                         .command_line = {"peal", "submit"}},
                                          .secret = Secret("sesame-sesame-sesame")});
  EXPECT_TRUE(is_job_id(made.id()));
  EXPECT_THAT(made.id(), StartsWith("mnist-"));
  EXPECT_EQ(made.path().parent_path(), folder.path() / "a/b");
  EXPECT_EQ(read_job(made), example_job());
  EXPECT_EQ(read_secret(made).text(), "sesame-sesame-sesame");
  const Submission submission = read_submission(made);
  EXPECT_EQ(submission.id, made.id());
  EXPECT_EQ(submission.name, "MNIST");
  EXPECT_EQ(submission.runner, "local");
  EXPECT_EQ(submission.directory, "/home/ann");
  EXPECT_THAT(submission.roles,
              ElementsAre(RoleRecord{"master", 1, 2}, RoleRecord{"worker", 3, 1}));
  EXPECT_EQ(submission.launcher, this_process());
  EXPECT_FALSE(submission.user.empty());
  EXPECT_LT(std::chrono::abs(wall_time_now() - submission.submitted_at), std::chrono::hours(1));
}

TEST(JobFolderTest, OnlyTheUserCanReadTheFolderAndItsFiles) {
  const TemporaryFolder folder;
  const mode_t former = ::umask(0);
  const JobFolder made = make_job_folder(
      folder.path() / "jobs", {.job = example_job(), .secret = Secret("sesame-sesame-sesame")});
  write(made, JobEnd());
  write(made, LauncherState());
  ::umask(former);
  EXPECT_EQ(mode_of(folder.path() / "jobs"), 0700U);
  EXPECT_EQ(mode_of(made.path()), 0700U);
  for (const auto& entry : std::filesystem::directory_iterator(made.path())) {
    EXPECT_EQ(mode_of(entry.path()), 0600U) << entry.path();
  }
}

TEST(JobFolderTest, ManyJobsOfOneNameGetFoldersOfTheirOwn) {
  const TemporaryFolder folder;
  constexpr int kThreads = 4;
  constexpr int kEach = 20;
  std::vector<std::vector<std::string>> ids(kThreads);
  {
    std::vector<std::jthread> threads;
    for (auto& own : ids) {
      threads.emplace_back([&] {
        for (int i = 0; i < kEach; ++i) {
          own.push_back(make_job_folder(folder.path(), {.job = example_job()}).id());
        }
      });
    }
  }
  std::set<std::string> all;
  for (const auto& own : ids) all.insert(own.begin(), own.end());
  EXPECT_EQ(all.size(), static_cast<std::size_t>(kThreads * kEach));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}),
            kThreads * kEach);  // nothing unfinished is left
}

TEST(JobFolderTest, AFolderIsFoundByTheBeginningOfItsId) {
  const TemporaryFolder folder;
  const JobFolder made = make_job_folder(folder.path(), {.job = example_job()});
  EXPECT_EQ(find_job_folder(folder.path(), made.id()), made);
  EXPECT_EQ(find_job_folder(folder.path(), "mni"), made);
  EXPECT_THAT(usage_error_of([&] { find_job_folder(folder.path(), "mnits"); }),
              testing::AllOf(HasSubstr(made.id()), HasSubstr(folder.path().string())));
  EXPECT_THAT(usage_error_of([&] { find_job_folder(folder.path(), "../jobs"); }),
              StartsWith("there is no job \"../jobs\""));
}

TEST(JobFolderTest, OnlyFoldersWithAnIdAsNameAreJobs) {
  const TemporaryFolder folder;
  EXPECT_THAT(job_ids(folder.path() / "missing"), IsEmpty());
  std::filesystem::create_directory(folder.path() / ".new.abcdef");
  std::filesystem::create_directory(folder.path() / "UPPER");
  std::filesystem::create_directory(folder.path() / "job-a");
  std::filesystem::create_directory(folder.path() / "job-b");
  std::ofstream(folder.path() / "file") << "x";
  EXPECT_THAT(job_ids(folder.path()), UnorderedElementsAre("job-a", "job-b"));
}

TEST(JobFolderTest, RecordsAreMissingUntilTheyAreWritten) {
  const TemporaryFolder folder;
  const JobFolder made = make_job_folder(folder.path(), {.job = example_job()});
  EXPECT_FALSE(read_state(made));
  EXPECT_FALSE(read_end(made));
  EXPECT_FALSE(read_cancel_request(made));
  EXPECT_TRUE(read_secret(made).empty());
  const LauncherState state{.launcher = this_process(), .state = JobState::kRunning};
  write(made, state);
  EXPECT_EQ(read_state(made), state);
  const JobEnd end{.state = JobState::kSucceeded, .exit_code = 0};
  write(made, end);
  EXPECT_EQ(read_end(made), end);
}

TEST(JobFolderTest, TheEndRemovesTheSecret) {
  const TemporaryFolder folder;
  const JobFolder made = make_job_folder(
      folder.path(), {.job = example_job(), .secret = Secret("sesame-sesame-sesame")});
  write(made, JobEnd());
  EXPECT_FALSE(std::filesystem::exists(made.secret_file()));
}

TEST(JobFolderTest, AnEndOfTheLauncherIsNotReplacedByOneThatComesLater) {
  const TemporaryFolder directory;
  const JobFolder folder = make_job_folder(directory.path(), {.job = example_job()});
  write_if_first(folder, {.exit_code = 1});
  EXPECT_EQ(read_end(folder)->exit_code, 1);
  write(folder, JobEnd{.exit_code = 2});
  write_if_first(folder, {.exit_code = 3});
  EXPECT_EQ(read_end(folder)->exit_code, 2);
  EXPECT_EQ(std::ranges::count_if(std::filesystem::directory_iterator(folder.path()),
                                  [](const auto& entry) {
                                    return entry.path().filename().string().starts_with("end");
                                  }),
            1)
      << "no unfinished file";
}

TEST(JobFolderTest, AnEndBeforeARequeueIsReplaced) {
  const TemporaryFolder directory;
  const JobFolder folder = make_job_folder(directory.path(), {.job = example_job()});
  write(folder, JobEnd{.exit_code = 1});
  write_if_first(folder, {.exit_code = 2, .requeues = 1});
  EXPECT_EQ(read_end(folder)->exit_code, 2);
  write_if_first(folder, {.exit_code = 3, .requeues = 1});
  EXPECT_EQ(read_end(folder)->exit_code, 2) << "of this start";
}

TEST(JobFolderTest, TheFirstRequestToCancelStays) {
  const TemporaryFolder folder;
  const JobFolder made = make_job_folder(folder.path(), {.job = example_job()});
  ask_to_cancel(made);
  const auto first = read_cancel_request(made);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->host, this_machine().host);
  std::filesystem::last_write_time(made.cancel_file(), {});
  ask_to_cancel(made);
  EXPECT_EQ(std::filesystem::last_write_time(made.cancel_file()),
            std::filesystem::file_time_type());
}

TEST(JobFolderTest, MissingAndDamagedFilesAreErrorsThatNameTheFile) {
  const TemporaryFolder folder;
  const JobFolder made = make_job_folder(folder.path(), {.job = example_job()});
  std::ofstream(made.end_file()) << "{";
  EXPECT_THAT(error_of([&] { read_end(made); }).what(),
              StartsWith("resource: " + made.end_file() + " is damaged"));
  std::filesystem::remove(made.submission_file());
  EXPECT_THAT(error_of([&] { read_submission(made); }).what(),
              StartsWith("resource: " + made.submission_file() + " cannot be read: No such file"));
}

TEST(JobFolderTest, AFolderThatCannotBeMadeIsAnErrorThatNamesTheVariable) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "file") << "x";
  const Error error =
      error_of([&] { make_job_folder(folder.path() / "file/jobs", {.job = example_job()}); });
  EXPECT_EQ(error.kind(), ErrorKind::kResource);
  EXPECT_THAT(error.what(), HasSubstr("PEAL_JOBS_DIR"));
}

TEST(JobFolderTest, LogsLieWhereTheLauncherWritesThem) {
  const JobFolder folder("/jobs/a");
  EXPECT_EQ(folder.attempt_directory(2), "/jobs/a/attempt-2");
  EXPECT_EQ(folder.rank_log(2, 13, Channel::kOut), "/jobs/a/attempt-2/rank-13.out");
  EXPECT_EQ(folder.rank_log(0, 0, Channel::kErr), "/jobs/a/attempt-0/rank-0.err");
}

}  // namespace
}  // namespace peal::launch::jobs
