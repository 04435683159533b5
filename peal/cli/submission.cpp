#include "peal/cli/submission.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <random>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/error.h"
#include "peal/base/printable.h"
#include "peal/cli/job_output.h"
#include "peal/cli/job_runner.h"
#include "peal/cli/say.h"
#include "peal/launch/agents/file_copy.h"
#include "peal/launch/cores.h"
#include "peal/launch/job/print_job.h"
#include "peal/launch/job_context.h"
#include "peal/launch/jobs/job_folder.h"
#include "peal/launch/jobs/job_id.h"
#include "peal/launch/jobs/job_list.h"
#include "peal/launch/kubernetes/manifests.h"
#include "peal/launch/slurm/batch_script.h"
#include "peal/launch/submitted/job_containers.h"
#include "peal/launch/submitted/launcher_options.h"
#include "peal/launch/submitted/unused_fields.h"
#include "peal/system/stop_signals.h"

namespace peal::cli {
namespace {

using launch::jobs::JobFolder;
using launch::jobs::Submission;

Error wrong_runner(const std::string& text) { return {ErrorKind::kUsage, text}; }

bool takes_hosts(const SubmitRequest& request) {
  return request.to == "ssh" || request.to == "mpi";
}

/// Rejects options that the runner does not take. Errors: usage.
void check_options_of_runner(const SubmitRequest& request) {
  if (!takes_hosts(request) && !request.hosts.empty()) {
    throw wrong_runner(fmt::format(
        "--to {} takes no hosts: leave out -H and --hostfile, or use --to ssh", request.to));
  }
  if (!takes_hosts(request) && !request.peal_path.empty()) {
    throw wrong_runner(fmt::format(
        "--to {} takes no --peal-path, which is for the hosts of --to ssh and mpi: leave it out",
        request.to));
  }
  if (request.is_train_job && request.to != "kubernetes") {
    throw wrong_runner(fmt::format(
        "--to {} makes no TrainJob: leave out --train-job, or use --to kubernetes", request.to));
  }
}

/// Nothing starts on this machine unless the user has said so. Errors: usage.
void check_runner_of(const SubmitRequest& request) {
  if (request.to.empty()) {
    throw wrong_runner(
        fmt::format("what starts the job? Name it with --to: {}; or see the job with --print or "
                    "--dry-run",
                    fmt::join(launch::kRunnerNames, ", ")));
  }
  if (takes_hosts(request) && request.hosts.empty()) {
    throw wrong_runner(fmt::format(
        "--to {} needs hosts: name them with -H host1,host2 or --hostfile FILE", request.to));
  }
  check_options_of_runner(request);
}

/// Rejects fields that containers do not support, as in Kubernetes. Errors: usage.
void check_containers_of(const launch::Job& job) {
  const auto role =
      std::ranges::find_if(job.roles, [](const launch::Role& each) { return !each.image.empty(); });
  if (role == job.roles.end()) return;
  if (!job.files.empty()) {
    throw wrong_runner(
        fmt::format("files: the role {} runs in a container, into which no files are copied: put "
                    "them into its image, or mount a folder by engine_options.container",
                    role->name));
  }
  if (!job.directory.empty() && !job.directory.starts_with('/')) {
    throw wrong_runner(fmt::format(
        "directory: the role {} runs in a container, which needs an absolute path: begin {} with /",
        role->name,
        quoted_beginning(job.directory)));
  }
}

void check_job_for(const SubmitRequest& request) {
  if (request.to == "kubernetes") return;
  if (request.to == "mpi" && !request.job.files.empty()) {
    throw wrong_runner(
        "--to mpi copies no files: leave out `files`, and use a folder that all hosts share");
  }
  check_containers_of(request.job);
  if (!request.hosts.empty()) {
    plan_processes(request.job, request.hosts, {});  // throws if there are too few hosts
  }
}

std::vector<std::string> runner_options(const SubmitRequest& request) {
  if (request.to == "kubernetes") {
    const auto own = request.job.engine_options.find("kubernetes");
    std::vector<std::string> options;
    if (own != request.job.engine_options.end()) options = own->second;
    if (request.is_train_job) options.emplace_back("--train-job");
    return options;
  }
  launch::submitted::LauncherOptions options{.peal = request.peal_path};
  for (const launch::JobHost& host : request.hosts) {
    options.hosts.push_back({host.name, host.slots});
  }
  return encode(options);
}

/// Rejects a folder that does not exist on this machine. The launcher makes the folder if it copies
/// files into it. Without `directory`, the launcher starts the processes in its own folder. Errors:
/// usage.
void check_directory(const launch::Job& job) {
  std::error_code error;
  if (job.directory.empty() || !job.files.empty()) return;
  if (launch::submitted::runs_only_in_containers(job)) return;
  if (std::filesystem::is_directory(job.directory, error)) return;
  throw wrong_runner(
      fmt::format("directory: there is no folder {} on this machine", printable(job.directory)));
}

/// Makes paths absolute, since the launcher may have another folder. Errors: usage, for a file that
/// does not exist; with --to local, also for such a folder.
launch::Job placed(const SubmitRequest& request, const std::filesystem::path& here) {
  if (request.to == "kubernetes") return request.job;
  launch::Job job = request.job;
  const bool is_of_the_image = job.directory.empty() && launch::submitted::has_containers(job);
  if (!is_of_the_image) job.directory = job.directory.empty() ? here : here / job.directory;
  for (launch::JobFile& file : job.files) {
    file.from = here / request.folder / file.from;
    launch::agents::files_below(file.from, file.to);
  }
  if (request.to == "local") check_directory(job);
  return job;
}

std::vector<std::string> unused_fields(const SubmitRequest& request) {
  const launch::Job& job = request.job;
  const std::string& runner = request.to;
  if (request.is_train_job) return launch::kubernetes::fields_unused_by_train_job(job);
  if (runner == "kubernetes") return launch::kubernetes::unused_fields(job);
  if (runner == "slurm") return launch::slurm::unused_fields(job);
  auto sentences = launch::submitted::unused_fields(job, runner);
  if (runner == "local") {
    const std::string missing =
        launch::submitted::missing_cpus(job, "this machine", launch::usable_cores());
    if (!missing.empty()) sentences.push_back(missing);
  }
  return sentences;
}

/// Of a printed job: it is not submitted, so it has no random part.
constexpr const char* kExampleRandomPart = "000000";

std::string printed_manifests(const SubmitRequest& request) {
  namespace kubernetes = launch::kubernetes;
  const kubernetes::ManifestOptions options{
      .id = launch::jobs::make_job_id(request.job.name, kExampleRandomPart),
      .job_namespace = "",
      .secret = Secret("(hidden)")};
  return kubernetes::to_shown_text(request.is_train_job ? train_job_manifests(request.job, options)
                                                        : manifests(request.job, options));
}

std::string printed_script(const SubmitRequest& request) {
  const std::string id = launch::jobs::make_job_id(request.job.name, kExampleRandomPart);
  return launch::slurm::batch_script(
      request.job,
      {.id = id, .peal = own_path(), .folder = (launch::jobs::jobs_directory() / id).string()});
}

/// Starts the job and records the answer of its engine. Returns the record. Nothing remains of a
/// job that the engine refuses.
Submission start(launch::Runner& runner, const launch::Job& job, const Submission& submission) {
  const JobFolder folder =
      launch::jobs::make_job_folder(launch::jobs::jobs_directory(), {job, submission, {}});
  const bool is_kubernetes = submission.runner == "kubernetes";
  std::string engine_id;
  try {
    engine_id =
        runner.start(job,
                     {.id = folder.id(),
                      .secret = is_kubernetes ? launch::make_job_context().job.secret : Secret()});
  } catch (...) {
    launch::jobs::remove_job(folder);
    throw;
  }
  Submission accepted = read_submission(folder);
  accepted.engine_id = engine_id;
  if (has_engine(accepted)) accepted.launcher.reset();
  write(folder, accepted);
  return accepted;
}

/// `peal cancel` during the start has found no job in the engine.
void cancel_if_asked(launch::Runner& runner, const Submission& submission) {
  const JobFolder folder(launch::jobs::jobs_directory() / submission.id);
  if (has_engine(submission) && read_cancel_request(folder)) runner.cancel(submission.id);
}

void say_next_commands(const SubmitRequest& request, const std::string& id) {
  if (request.to == "kubernetes" && request.job.roles.size() > 1 && !request.stream_logs) {
    say("peal: after a role has ended the job, Kubernetes does not end the other roles; "
        "peal status and peal logs -f end them\n");
  }
  if (!request.stream_logs) {
    fmt::print("{}\n", id);
    std::fflush(stdout);
  }
  say(fmt::format("peal: submitted {0}; see it with\n  peal status {0}\n  peal logs -f {0}\n", id));
}

}  // namespace

std::vector<std::string> check_job(const SubmitRequest& request) {
  std::vector<std::string> notices;
  if (!request.to.empty()) {
    check_options_of_runner(request);
    check_job_for(request);
    notices = unused_fields(request);
  }
  placed(request, std::filesystem::current_path());
  return notices;
}

std::string printed(const SubmitRequest& request) {
  if (!request.to.empty()) check_options_of_runner(request);
  if (request.to == "slurm") return printed_script(request);
  return request.to == "kubernetes" ? printed_manifests(request) : launch::print_job(request.job);
}

constexpr const char* kAtCtrlC =
    "peal: the job is being started; peal submit ends after that (another Ctrl-C ends it at once, "
    "and the job may run nevertheless)\n";

int submit(const SubmitRequest& request) {
  check_runner_of(request);
  check_job_for(request);
  const std::filesystem::path here = std::filesystem::current_path();
  Submission submission{.runner = request.to,
                        .runner_options = runner_options(request),
                        .directory = here,
                        .command_line = launch::jobs::without_secrets(request.command_line)};
  say_notices(unused_fields(request));
  const auto runner = make_runner(submission);
  const launch::Job job = placed(request, here);
  {
    // So that no job runs without its id.
    const StopSignals signals({SIGINT, SIGTERM, SIGHUP}, kAtCtrlC);
    submission = start(*runner, job, submission);
    say_next_commands(request, submission.id);
    cancel_if_asked(*runner, submission);
    if (const int number = signals.number(); number != 0) {
      say_job_goes_on(submission.id);
      return launch::kSignalBase + number;
    }
  }
  return request.stream_logs ? stream(*runner, submission) : 0;
}

}  // namespace peal::cli
