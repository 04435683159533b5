#include "peal/launch/jobs/job_list.h"

#include <sys/stat.h>

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/printable.h"

namespace peal::launch::jobs {
namespace {

/// Names of folders that are not finished or half removed.
constexpr const char* kHiddenPrefixes[] = {".new.", ".old."};
/// No submission takes as long.
constexpr auto kAbandonedAfter = std::chrono::hours(1);

WallTime changed_at(const std::filesystem::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return {};
  return WallTime(std::chrono::seconds(status.st_mtim.tv_sec));
}

std::optional<WallTime> end_of_job(const JobRecords& records, const JobStatus& status) {
  if (records.end) return records.end->ended_at;
  if (!has_ended(status.state)) return std::nullopt;
  return records.state ? records.state->written_at : records.submission.submitted_at;
}

int most_nodes(const Submission& submission) {
  int nodes = 0;
  for (const RoleRecord& role : submission.roles) nodes += role.nodes;
  return nodes;
}

JobEntry entry_of(const JobFolder& folder) {
  JobEntry entry{.id = folder.id()};
  try {
    const JobRecords records = read_records(folder);
    const Submission& submission = records.submission;
    entry.name = submission.name;
    entry.runner = submission.runner;
    entry.status = status_of(records, wall_time_now());
    entry.has_launcher = records.end || records.state || !has_engine(submission);
    entry.nodes = most_nodes(submission);
    entry.submitted_at = submission.submitted_at;
    entry.ended_at = end_of_job(records, entry.status);
  } catch (const Error& error) {
    entry = {.id = folder.id(), .submitted_at = changed_at(folder.path())};
    entry.damage = error.message();
  }
  return entry;
}

void remove_abandoned_folders(const std::filesystem::path& directory, WallTime now) {
  std::error_code error;
  std::vector<std::filesystem::path> abandoned;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    const bool is_hidden = std::ranges::any_of(
        kHiddenPrefixes, [&](const char* prefix) { return name.starts_with(prefix); });
    if (is_hidden && now - changed_at(entry->path()) > kAbandonedAfter) {
      abandoned.push_back(entry->path());
    }
  }
  for (const std::filesystem::path& path : abandoned) std::filesystem::remove_all(path, error);
}

}  // namespace

/// Renames first, so that no reader takes a half removed folder for a damaged job.
void remove_job(const JobFolder& folder) {
  const std::filesystem::path hidden = folder.path().parent_path() / (".old." + folder.id());
  std::error_code error;
  std::filesystem::rename(folder.path(), hidden, error);
  if (!error) std::filesystem::remove_all(hidden, error);
  if (error && error != std::errc::no_such_file_or_directory) {
    throw Error(
        ErrorKind::kResource,
        fmt::format("cannot remove {}: {}", printable(folder.path().string()), error.message()));
  }
}

std::vector<JobEntry> list_jobs(const std::filesystem::path& directory) {
  std::vector<JobEntry> entries;
  for (const std::string& id : job_ids(directory)) {
    const JobFolder folder(directory / id);
    entries.push_back(entry_of(folder));
    std::error_code unknown;
    if (!std::filesystem::exists(folder.path(), unknown)) entries.pop_back();  // removed meanwhile
  }
  std::ranges::sort(entries, [](const JobEntry& a, const JobEntry& b) {
    return std::tie(b.submitted_at, a.id) < std::tie(a.submitted_at, b.id);
  });
  return entries;
}

std::vector<std::string> remove_ended_jobs(const std::filesystem::path& directory,
                                           std::chrono::seconds age,
                                           WallTime now) {
  std::vector<std::string> removed;
  for (const JobEntry& entry : list_jobs(directory)) {
    if (!entry.ended_at || now - *entry.ended_at < age) continue;
    remove_job(JobFolder(directory / entry.id));
    removed.push_back(entry.id);
  }
  remove_abandoned_folders(directory, now);
  return removed;
}

}  // namespace peal::launch::jobs
