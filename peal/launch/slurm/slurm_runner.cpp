#include "peal/launch/slurm/slurm_runner.h"

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "peal/base/error.h"
#include "peal/launch/jobs/job_folder.h"
#include "peal/launch/jobs/job_logs.h"
#include "peal/launch/jobs/job_status.h"
#include "peal/launch/slurm/batch_script.h"
#include "peal/launch/slurm/slurm_commands.h"
#include "peal/launch/slurm/slurm_state.h"

namespace peal::launch::slurm {
namespace {

/// While logs are followed; each look starts a command of Slurm.
constexpr auto kAskEvery = std::chrono::seconds(2);

class SlurmRunner final : public Runner {
 public:
  SlurmRunner(std::filesystem::path directory, std::string peal)
      : directory_(std::move(directory)), peal_(std::move(peal)) {}

  std::string start(const Job& job, const StartOptions& options) override {
    const jobs::JobFolder folder(directory_ / options.id);
    return submit(
        batch_script(job, {.id = options.id, .peal = peal_, .folder = folder.path().string()}));
  }

  JobStatus status(const std::string& id) override;
  void logs(const std::string& id, const LogQuery& query, const LogSink& sink) override;
  CancelResult cancel(const std::string& id) override;
  bool remove_remains(const std::string& /*id*/) override { return false; }

 private:
  jobs::JobFolder find(const std::string& id) const {
    return jobs::find_job_folder(directory_, id);
  }

  const std::filesystem::path directory_;
  const std::string peal_;
};

/// Slurm forgets the job soon, and then only the record tells why it has ended. A launcher that
/// Slurm has killed has left no record.
void keep_the_end(const jobs::JobFolder& folder,
                  const jobs::JobRecords& records,
                  const SlurmJob& job,
                  const JobStatus& status) {
  const auto known = end_of_this_start(records, job);
  if (!is_final(job.state) || has_final_state(known)) return;
  jobs::JobEnd whole = jobs::end_of(status, jobs::wall_time_now());
  if (known) {
    whole.ended_at = known->ended_at;
    whole.attempts = known->attempts;
  }
  whole.requeues = job.requeues;
  known ? write(folder, whole) : write_if_first(folder, whole);
}

JobStatus without_an_answer(const jobs::JobRecords& records, const Error& error) {
  JobStatus status = jobs::status_of(records, jobs::wall_time_now());
  if (!has_ended(status.state)) status.reason = error.message();
  return status;
}

JobStatus SlurmRunner::status(const std::string& id) {
  const jobs::JobFolder folder = find(id);
  // Slurm first: a job that has ended there has its records already.
  std::optional<SlurmJob> job;
  try {
    job = decisive(ask(read_submission(folder).engine_id, id));
  } catch (const Error& error) {
    return without_an_answer(read_records(folder), error);
  }
  const jobs::JobRecords records = read_records(folder);
  JobStatus status = status_of(records, job, jobs::wall_time_now());
  if (job) keep_the_end(folder, records, *job, status);
  return status;
}

void SlurmRunner::logs(const std::string& id, const LogQuery& query, const LogSink& sink) {
  TimePoint next{};
  bool ended = false;
  std::set<std::string> told;  // why the job waits: Slurm changes between several reasons
  read_logs(find(id), query, sink, [&] {
    if (ended || Clock::now() < next) return ended;
    const JobStatus now = status(id);
    const bool waits = now.state == JobState::kQueued && !now.reason.empty();
    if (query.tell && waits && told.insert(now.reason).second) {
      query.tell("the job waits; " + now.reason);
    }
    next = Clock::now() + kAskEvery;
    return ended = has_ended(now.state);
  });
}

CancelResult SlurmRunner::cancel(const std::string& id) {
  const jobs::JobFolder folder = find(id);
  const std::string number = read_submission(folder).engine_id;
  const auto found = decisive(ask(number, id));
  if (!found) return CancelResult::kNoSuchJob;
  const std::string job = number.empty() ? "--name=" + id : number;  // peal submit was killed
  const auto asked = read_cancel_request(folder);
  const auto grace = read_job(folder).grace;
  if (asked && jobs::wall_time_now() - asked->asked_at > grace) {
    end_now(job);
  } else if (!found->lost_host.empty()) {
    ask_to_cancel(folder);
    end_now(job);  // no launcher gives the ranks their grace
  } else {
    ask_to_cancel(folder);  // so that the launcher knows why
    ask_to_end(job);
  }
  return CancelResult::kCancelled;
}

}  // namespace

std::unique_ptr<Runner> make_slurm_runner(std::filesystem::path directory, std::string peal) {
  return std::make_unique<SlurmRunner>(std::move(directory), std::move(peal));
}

}  // namespace peal::launch::slurm
