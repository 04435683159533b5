#include "peal/launch/submitted/launched_runner.h"

#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/launch/agents/engine_program.h"
#include "peal/launch/jobs/job_folder.h"
#include "peal/launch/jobs/job_logs.h"
#include "peal/launch/jobs/job_status.h"
#include "peal/launch/own_host.h"
#include "peal/launch/submitted/job_hosts.h"
#include "peal/launch/submitted/job_record.h"
#include "peal/launch/submitted/launcher_options.h"
#include "peal/launch/submitted/start_launcher.h"
#include "peal/system/own_file.h"

namespace peal::launch::submitted {
namespace {

/// Checks the engine here, because the launcher would fail only after `peal submit` has returned.
/// Errors: resource.
void require_engine(const Job& job, const jobs::Submission& submission) {
  const LauncherOptions given = decode_launcher_options(submission.runner_options);
  const agents::EngineOptions engine = engine_of(job, submission, given);
  // The agent of this machine needs no ssh.
  const bool is_used = engine.engine != agents::Engine::kSsh || has_other_hosts(given.hosts);
  const std::string problem = is_used ? agents::find_engine_program(engine).problem : "";
  if (!problem.empty()) throw Error(ErrorKind::kResource, problem);
}

class LaunchedRunner final : public Runner {
 public:
  LaunchedRunner(std::filesystem::path directory, std::string peal)
      : directory_(std::move(directory)), peal_(std::move(peal)) {}

  std::string start(const Job& job, const StartOptions& options) override {
    const jobs::JobFolder folder(directory_ / options.id);
    require_engine(job, read_submission(folder));
    if (const auto launcher = start_launcher(peal_, folder)) {
      jobs::Submission submission = read_submission(folder);
      submission.launcher = launcher;
      write(folder, submission);
    } else if (!read_end(folder)) {
      throw Error(ErrorKind::kResource,
                  fmt::format("the launcher of the job has failed: {}",
                              as_sentence(read_own_file(folder.launcher_log()))));
    }
    return options.id;
  }

  JobStatus status(const std::string& id) override { return status_of(find(id)); }

  void logs(const std::string& id, const LogQuery& query, const LogSink& sink) override {
    read_logs(find(id), query, sink);
  }

  CancelResult cancel(const std::string& id) override {
    ask_to_cancel(find(id));
    return CancelResult::kCancelled;
  }

  bool remove_remains(const std::string& /*id*/) override { return false; }

 private:
  jobs::JobFolder find(const std::string& id) const {
    return jobs::find_job_folder(directory_, id);
  }

  const std::filesystem::path directory_;
  const std::string peal_;
};

}  // namespace

std::unique_ptr<Runner> make_launched_runner(std::filesystem::path directory, std::string peal) {
  return std::make_unique<LaunchedRunner>(std::move(directory), std::move(peal));
}

}  // namespace peal::launch::submitted
