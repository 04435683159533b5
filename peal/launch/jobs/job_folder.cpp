#include "peal/launch/jobs/job_folder.h"

#include <pwd.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/parse_number.h"
#include "peal/base/printable.h"
#include "peal/launch/job/print_job.h"
#include "peal/launch/job/read_job.h"
#include "peal/launch/jobs/job_id.h"
#include "peal/system/own_file.h"
#include "peal/system/whole_file.h"

namespace peal::launch::jobs {
namespace {

constexpr int kMostTries = 100;  // ids that exist already

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

/// The entry of this user in the list of accounts. Empty fields: the user has no entry.
struct Account {
  std::string name;
  std::string home;
};

Account own_account() {
  std::array<char, 16'384> texts{};
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(::geteuid(), &entry, texts.data(), texts.size(), &found) != 0 || !found)
    return {};
  return {.name = found->pw_name, .home = found->pw_dir};
}

std::string home_of_the_user() {
  if (std::string home = variable("HOME"); home.starts_with('/')) return home;
  if (std::string home = own_account().home; home.starts_with('/')) return home;
  throw Error(ErrorKind::kUsage,
              "HOME is not set, so there is no place for the records of jobs: set PEAL_JOBS_DIR to "
              "a folder");
}

std::string name_of_the_user() {
  const std::string name = own_account().name;
  return name.empty() ? fmt::format("{}", ::geteuid()) : name;
}

/// Makes the folder and its parents, for this user only. Leaves those that exist as they are.
void make_private_folders(const std::filesystem::path& path) {
  std::error_code unknown;
  if (path.empty() || std::filesystem::is_directory(path, unknown)) return;
  make_private_folders(path.parent_path());
  if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return;
  throw system_error(
      fmt::format("cannot make the folder {} for the records of jobs (PEAL_JOBS_DIR names another)",
                  printable(path.string())),
      errno);
}

/// A folder that no reader sees, since its name is not an id. Removed unless it was renamed.
class UnfinishedFolder final {
 public:
  explicit UnfinishedFolder(const std::filesystem::path& directory) {
    std::string name = directory / ".new.XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) {  // mode 0700
      throw system_error("cannot make " + printable(name), errno);
    }
    path_ = name;
  }
  ~UnfinishedFolder() {
    std::error_code stays;
    if (!path_.empty()) std::filesystem::remove_all(path_, stays);
  }
  UnfinishedFolder(const UnfinishedFolder&) = delete;
  UnfinishedFolder& operator=(const UnfinishedFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// Returns false if `path` exists: a folder with content is never replaced.
  bool try_rename(const std::filesystem::path& path) {
    if (::rename(path_.c_str(), path.c_str()) == 0) {
      path_.clear();
      return true;
    }
    if (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR) return false;
    throw system_error("cannot make " + printable(path.string()), errno);
  }

 private:
  std::filesystem::path path_;
};

bool exists(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0;
}

std::string read_record(const std::string& path) {
  try {
    return read_own_file(path);
  } catch (const Error& error) {
    throw Error(ErrorKind::kResource, fmt::format("{} {}", printable(path), error.message()));
  }
}

template <class Decode>
auto read_if_it_exists(const std::string& path, Decode decode)
    -> std::optional<decltype(decode(std::string_view(), path))> {
  if (!exists(path)) return std::nullopt;
  return decode(read_record(path), path);
}

/// What make_job_folder knows by itself.
Submission completed(const NewJob& job) {
  Submission submission = job.submission;
  submission.name = job.job.name;
  submission.roles = role_records(job.job);
  submission.submitted_at = wall_time_now();
  submission.launcher = this_process();
  submission.host = submission.launcher->machine.host;
  submission.user = name_of_the_user();
  return submission;
}

}  // namespace

std::filesystem::path jobs_directory() {
  if (std::string own = variable("PEAL_JOBS_DIR"); !own.empty()) {
    if (own.starts_with('/')) return own;
    throw Error(ErrorKind::kUsage,
                fmt::format("PEAL_JOBS_DIR={} is not an absolute path, so each folder would have "
                            "other jobs: write it with a / in front",
                            printable(own)));
  }
  const std::string state = variable("XDG_STATE_HOME");
  const std::string parent = state.starts_with('/') ? state : home_of_the_user() + "/.local/state";
  return std::filesystem::path(parent) / "peal/jobs";
}

std::string JobFolder::attempt_directory(int attempt) const {
  return path_ / fmt::format("attempt-{}", attempt);
}

std::string JobFolder::rank_log(int attempt, Rank rank, Channel channel) const {
  return fmt::format(
      "{}/rank-{}.{}", attempt_directory(attempt), rank, channel == Channel::kOut ? "out" : "err");
}

std::string JobFolder::failure_file(int attempt) const {
  return attempt_directory(attempt) + "/failure.txt";
}

std::string JobFolder::requeue_file(int attempt) const {
  return attempt_directory(attempt) + "/requeue.txt";
}

JobFolder make_job_folder(const std::filesystem::path& directory, const NewJob& job) {
  make_private_folders(directory);
  UnfinishedFolder unfinished(directory);
  const JobFolder files(unfinished.path());
  write_whole_file(files.job_file(), print_job(job.job));
  if (!job.secret.empty()) {
    write_all(make_own_file(files.secret_file()), job.secret.text(), files.secret_file());
  }
  Submission submission = completed(job);
  for (int i = 0; i < kMostTries; ++i) {
    submission.id = make_job_id(job.job.name, make_random_part());
    write(files, submission);
    JobFolder folder(directory / submission.id);
    if (unfinished.try_rename(folder.path())) return folder;
  }
  throw Error(
      ErrorKind::kResource,
      fmt::format("{} ids of jobs exist already in {}", kMostTries, printable(directory.string())));
}

JobFolder find_job_folder(const std::filesystem::path& directory, std::string_view text) {
  try {
    return JobFolder(directory / find_job_id(text, job_ids(directory)));
  } catch (const Error& error) {
    throw Error(error.kind(),
                fmt::format("{} (jobs are in {})", error.message(), printable(directory.string())));
  }
}

std::vector<int> attempts_of(const JobFolder& folder) {
  constexpr std::string_view kPrefix = "attempt-";
  std::vector<int> attempts;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder.path(), error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (!name.starts_with(kPrefix)) continue;
    const auto number = try_parse_number<int>(std::string_view(name).substr(kPrefix.size()));
    if (number && *number >= 0) attempts.push_back(*number);
  }
  std::ranges::sort(attempts);
  return attempts;
}

int restarts_of(const JobFolder& folder) {
  return static_cast<int>(std::ranges::count_if(
      attempts_of(folder), [&](int attempt) { return exists(folder.failure_file(attempt)); }));
}

std::vector<std::string> job_ids(const std::filesystem::path& directory) {
  std::vector<std::string> ids;
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error);
  if (error == std::errc::no_such_file_or_directory) return ids;
  while (!error && entry != std::filesystem::directory_iterator()) {
    const std::string name = entry->path().filename();
    std::error_code unknown;
    if (is_job_id(name) && entry->is_directory(unknown)) ids.push_back(name);
    entry.increment(error);
  }
  if (error) {
    throw Error(
        ErrorKind::kResource,
        fmt::format(
            "cannot list the jobs in {}: {}", printable(directory.string()), error.message()));
  }
  return ids;
}

void write(const JobFolder& folder, const Submission& submission) {
  write_whole_file(folder.submission_file(), encode(submission));
}

void write(const JobFolder& folder, const LauncherState& state) {
  write_whole_file(folder.state_file(), encode(state));
}

void write(const JobFolder& folder, const JobEnd& end) {
  write_whole_file(folder.end_file(), encode(end));
  remove_own_file(folder.secret_file());
}

void write_if_first(const JobFolder& folder, const JobEnd& end) {
  const auto earlier = read_end(folder);
  if (earlier && earlier->requeues < end.requeues) remove_own_file(folder.end_file());
  write_first_whole_file(folder.end_file(), encode(end));
  remove_own_file(folder.secret_file());
}

void write(const JobFolder& folder, const FailedAttempt& failed) {
  write_whole_file(folder.failure_file(failed.attempt), failed.failure);
}

void write_requeued(const JobFolder& folder, const FailedAttempt& ended) {
  write_whole_file(folder.requeue_file(ended.attempt), ended.failure);
}

void ask_to_cancel(const JobFolder& folder) {
  if (exists(folder.cancel_file())) return;
  write_whole_file(
      folder.cancel_file(),
      encode(CancelRequest{
          .asked_at = wall_time_now(), .host = this_machine().host, .user = name_of_the_user()}));
}

Submission read_submission(const JobFolder& folder) {
  const std::string path = folder.submission_file();
  return decode_submission(read_record(path), path);
}

Job read_job(const JobFolder& folder) {
  const std::string path = folder.job_file();
  return launch::read_job(read_record(path), path).job;
}

Secret read_secret(const JobFolder& folder) {
  if (!exists(folder.secret_file())) return Secret();
  std::string text = read_record(folder.secret_file());
  const Wiped wiped(text);
  return Secret(text);
}

std::optional<LauncherState> read_state(const JobFolder& folder) {
  return read_if_it_exists(folder.state_file(), decode_state);
}

std::optional<JobEnd> read_end(const JobFolder& folder) {
  return read_if_it_exists(folder.end_file(), decode_end);
}

std::optional<CancelRequest> read_cancel_request(const JobFolder& folder) {
  return read_if_it_exists(folder.cancel_file(), decode_cancel_request);
}

std::optional<FailedAttempt> read_failure(const JobFolder& folder, int attempt) {
  for (const std::string& path : {folder.failure_file(attempt), folder.requeue_file(attempt)}) {
    if (exists(path)) return FailedAttempt{.attempt = attempt, .failure = read_record(path)};
  }
  return std::nullopt;
}

}  // namespace peal::launch::jobs
