#include "peal/cli/job_commands.h"

#include <chrono>
#include <cstdio>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "peal/base/duration_text.h"
#include "peal/base/error.h"
#include "peal/base/parse_number.h"
#include "peal/base/printable.h"
#include "peal/cli/job_output.h"
#include "peal/cli/job_text.h"
#include "peal/cli/submitted_job.h"
#include "peal/launch/jobs/job_list.h"

namespace peal::cli {
namespace {

namespace records = launch::jobs;

constexpr const char* kJobHelp =
    "The id of the job, the beginning of the id, or the name of the job";

std::optional<int> count_of(const char* option, const std::string& text) {
  if (text.empty()) return std::nullopt;
  const auto number = try_parse_number<int>(text);
  if (number && *number >= 0) return *number;
  throw Error(ErrorKind::kUsage,
              fmt::format("{} {}: it takes a number from 0", option, quoted_beginning(text)));
}

std::chrono::seconds age_of(const std::string& text) {
  if (const auto age = try_parse_duration(text)) {
    return std::chrono::duration_cast<std::chrono::seconds>(*age);
  }
  throw Error(
      ErrorKind::kUsage,
      fmt::format("--remove-after {}: it takes a time such as 7d or 12h", quoted_beginning(text)));
}

/// As recorded, or else as the engine says. Called after `status`, which may record the end.
std::optional<records::WallTime> end_time(const SubmittedJob& job,
                                          const launch::JobStatus& status) {
  const auto recorded = job.ended_at();
  return recorded ? recorded : status.ended_at;
}

/// If an engine does not answer, the other jobs are listed nevertheless.
void ask_the_engine(records::JobEntry& job) {
  try {
    const SubmittedJob submitted(job.id);
    job.status = submitted.status();
    job.ended_at = end_time(submitted, job.status);
  } catch (const Error& error) {
    job.status.reason = error.message();
  }
}

}  // namespace

JobCommands::JobCommands(CLI::App& app)
    : status_(app.add_subcommand("status", "Show the state of a submitted job")),
      logs_(app.add_subcommand("logs", "Show the output of a submitted job")),
      cancel_(app.add_subcommand("cancel", "End submitted jobs")),
      jobs_(app.add_subcommand("jobs", "List the submitted jobs")) {
  status_->add_option("JOB", id_, kJobHelp)->required()->type_name("");
  logs_->add_option("JOB", id_, kJobHelp)->required()->type_name("");
  logs_->add_flag("-f,--follow", follows_, "Continue until the job has ended");
  logs_->add_option("--rank", rank_, "Only this rank")->type_name("N");
  logs_->add_option("--attempt", attempt_, "This attempt, from 0 (the last one)")->type_name("K");
  cancel_->add_option("JOB", ids_, kJobHelp)->required()->type_name("");
  for (CLI::App* command : {status_, logs_, cancel_}) {
    command->add_option("--to", to_, "The runner of a job that was submitted elsewhere")
        ->type_name("kubernetes");
  }
  for (CLI::App* command : {status_, jobs_}) {
    command->add_flag("--json", as_json_, "Print JSON");
  }
  jobs_
      ->add_option("--remove-after",
                   remove_after_,
                   "Remove the records and logs of jobs that have ended so long ago, such as 7d")
      ->type_name("TIME");
}

bool JobCommands::were_asked_for() const {
  return status_->parsed() || logs_->parsed() || cancel_->parsed() || jobs_->parsed();
}

int JobCommands::run() const {
  if (status_->parsed()) return show_status();
  if (logs_->parsed()) return show_logs();
  if (cancel_->parsed()) return cancel();
  return list();
}

SubmittedJob JobCommands::find(const std::string& text) const {
  return to_.empty() ? SubmittedJob(text) : SubmittedJob(text, to_);
}

int JobCommands::show_status() const {
  const SubmittedJob job = find(id_);
  const launch::JobStatus status = job.status();
  const auto ended_at = end_time(job, status);
  const std::string text = as_json_ ? status_json(job.submission(), status, ended_at)
                                    : status_text(job.submission(), status, ended_at);
  std::fputs(text.c_str(), stdout);
  return 0;
}

int JobCommands::show_logs() const {
  const SubmittedJob job = find(id_);
  launch::LogQuery query{.rank = count_of("--rank", rank_),
                         .attempt = count_of("--attempt", attempt_)};
  if (follows_) query.follow = launch::Follow::kUntilTheEnd;
  const ShownLogs shown = cli::show_logs(job.runner(), job.submission(), query);
  if (shown.exit_code != 0) return shown.exit_code;
  if (follows_) {
    say_end(job.status());
  } else if (!shown.has_lines && !query.rank && !query.attempt) {
    const launch::JobStatus status = job.status();
    if (!status.first_failure.empty()) say_end(status);  // perhaps the job could not start
  }
  return 0;
}

int JobCommands::cancel() const {
  std::vector<SubmittedJob> jobs;  // all are found before the first one is cancelled
  for (const std::string& text : ids_) jobs.push_back(find(text));
  for (const SubmittedJob& job : jobs) {
    const launch::JobStatus status = job.status();
    if (has_ended(status.state)) {
      fmt::print("{} has ended already: {}{}\n",
                 job.id(),
                 name_of(status.state),
                 job.runner().remove_remains(job.id())
                     ? "; its objects are being removed from the cluster"
                     : "");
      continue;
    }
    job.cancel();
    fmt::print("{} is being cancelled\n", job.id());
  }
  return 0;
}

int JobCommands::list() const {
  const auto directory = records::jobs_directory();
  if (!remove_after_.empty()) {
    for (const std::string& id :
         records::remove_ended_jobs(directory, age_of(remove_after_), records::wall_time_now())) {
      fmt::print("removed {}\n", id);
    }
    return 0;
  }
  auto jobs = records::list_jobs(directory);
  for (records::JobEntry& job : jobs) {
    if (job.damage.empty() && !job.has_launcher) ask_the_engine(job);
  }
  if (jobs.empty() && !as_json_) {
    fmt::print("no jobs in {}\n", printable(directory.string()));
    return 0;
  }
  std::fputs((as_json_ ? list_json(jobs) : list_text(jobs)).c_str(), stdout);
  return 0;
}

}  // namespace peal::cli
