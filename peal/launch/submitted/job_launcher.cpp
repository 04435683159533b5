#include "peal/launch/submitted/job_launcher.h"

#include <unistd.h>

#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/config/environment.h"
#include "peal/launch/agents/agent_guard.h"
#include "peal/launch/agents/machine_variables.h"
#include "peal/launch/agents/run_on_hosts.h"
#include "peal/launch/allocation_end.h"
#include "peal/launch/attempt_loop.h"
#include "peal/launch/containers/engine_client.h"
#include "peal/launch/flights.h"
#include "peal/launch/inherited.h"
#include "peal/launch/job/node_plan.h"
#include "peal/launch/job/rank_variables.h"
#include "peal/launch/launcher.h"
#include "peal/launch/outputs.h"
#include "peal/launch/post_mortem.h"
#include "peal/launch/signals.h"
#include "peal/launch/submitted/job_containers.h"
#include "peal/launch/submitted/job_hosts.h"
#include "peal/launch/submitted/job_ranks.h"
#include "peal/launch/submitted/job_record.h"
#include "peal/launch/submitted/launcher_options.h"
#include "peal/system/process_state.h"

namespace peal::launch::submitted {
namespace {

constexpr int kTimedOut = 124;  // as timeout(1)
constexpr int kCancelled = kSignalBase + SIGTERM;

void say(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

std::vector<JobHost> as_job_hosts(std::span<const HostSlots> hosts) {
  std::vector<JobHost> result;
  for (const HostSlots& host : hosts) result.push_back({host.name, host.slots});
  return result;
}

std::vector<agents::FileToCopy> files_of(const Job& job) {
  std::vector<agents::FileToCopy> files;
  for (const JobFile& file : job.files) {
    const auto below = agents::files_below(file.from, file.to);
    files.insert(files.end(), below.begin(), below.end());
  }
  return files;
}

/// Each attempt takes the hosts that it needs, so those that remain are the spare ones. Containers
/// have the id of the job as a label.
Job as_launched(Job job, const std::string& id) {
  job.spare_nodes = 0;
  job.labels[kJobLabel] = id;
  return job;
}

class JobLauncher final : public AttemptedJob {
 public:
  JobLauncher(const jobs::JobFolder& folder, const std::string& version);
  int run_to_the_end();

  AttemptEnd run(const BeginAttempt& attempt, int number) override;
  void tell(const std::string& sentence) override;
  void give_up(const std::string& sentence) override;
  void interrupted(int signal, const std::string& sentence) override;
  void wait(const std::string& sentence) override;
  void restart(const std::string& sentence) override;
  void preempted(const std::string& sentence) override;
  int look() override;
  bool is_preempted() override;

 private:
  ProcessPlan plan(std::span<const HostSlots> hosts, const MasterAddress& master) const;
  int room_for(std::span<const HostSlots> hosts) const;
  AttemptRules rules() const;
  std::optional<Timeout> time_left() const;
  agents::AgentsOptions agents_options(const std::string& id) const;
  AttemptEnd connect(agents::Agents& agents, const ProcessPlan& planned, int number);
  AttemptEnd refuse(const agents::Refusal& refusal, int number);
  void say_about(const agents::AgentHost& host) const;
  AttemptEnd start(const BeginAttempt& attempt,
                   int number,
                   const NewJobContext& made,
                   agents::Agents& agents);
  LaunchOptions options_of(const ProcessPlan& plan, int number) const;
  AttemptEnd report(LaunchReport& report,
                    const Flights& flights,
                    const std::string& id,
                    const LaunchOptions& options);
  void finish(int exit_code);

  SignalReader signals_;  // before the record shows the job, and until it shows the end
  const jobs::JobFolder folder_;
  const jobs::Submission submission_;
  const Job job_;
  const std::string version_;
  JobRecord record_;
  const LauncherOptions given_;
  const Variables inherited_;
  const TimePoint start_ = Clock::now();
  /// Asked once, before any agent waits for frames: squeue may take longer than their patience.
  const std::optional<TimePoint> allocation_end_ = end_of_allocation(job_, submission_);
  const int first_attempt_;  // not 0 if Slurm has started this launcher again
  jobs::JobEnd end_;         // of the last attempt
};

Variables inherited_variables() {
  Variables variables = without_those_of_a_rank(process_variables());
  remove_rank_variables(variables);
  return part_of(variables, agents::Part::kJob);
}

int next_attempt_of(const jobs::JobFolder& folder) {
  const std::vector<int> earlier = jobs::attempts_of(folder);
  return earlier.empty() ? 0 : earlier.back() + 1;
}

JobLauncher::JobLauncher(const jobs::JobFolder& folder, const std::string& version)
    : folder_(folder),
      submission_(read_submission(folder)),
      job_(as_launched(read_job(folder), folder.id())),
      version_(version),
      record_(folder, job_.success_role),
      given_(decode_launcher_options(submission_.runner_options)),
      inherited_(inherited_variables()),
      first_attempt_(next_attempt_of(folder)) {}

int JobLauncher::run_to_the_end() {
  int exit_code = 1;
  try {
    AttemptState state{
        .hosts = {}, .restarts = jobs::restarts_of(folder_), .waiting_since = Clock::now()};
    for (const HostSlots& host : hosts_for(job_, submission_, given_)) {
      state.hosts.push_back({host});
    }
    exit_code = run_attempts(
        std::move(state),
        rules(),
        [this](std::span<const HostSlots> hosts) { return room_for(hosts); },
        *this,
        signals_);
  } catch (const Error& error) {
    end_ = {.cause = EndCause::kEngine, .first_failure = error.what()};
  }
  finish(exit_code);
  signals_.take_end();  // the job has its end
  return exit_code;
}

AttemptRules JobLauncher::rules() const {
  AttemptRules rules{.restarts = job_.restarts, .host_timeout = job_.start_timeout};
  rules.least_ranks = rules.most_ranks = 0;
  for (const Role& role : job_.roles) {
    rules.least_ranks += role.nodes.least * role.ranks_per_node;
    rules.most_ranks += role.nodes.most * role.ranks_per_node;
  }
  return rules;
}

ProcessPlan JobLauncher::plan(std::span<const HostSlots> hosts, const MasterAddress& master) const {
  return plan_processes(job_, as_job_hosts(hosts), master);
}

int JobLauncher::room_for(std::span<const HostSlots> hosts) const {
  return ranks_with_room(job_, as_job_hosts(hosts));
}

std::optional<Timeout> JobLauncher::time_left() const {
  if (!job_.max_run_time) return std::nullopt;
  return Deadline(start_ + *job_.max_run_time).left();
}

int JobLauncher::look() {
  if (record_.look()) return kCancelled;
  const auto left = time_left();
  return left && left->count() == 0 ? kTimedOut : 0;
}

bool JobLauncher::is_preempted() {
  return submission_.runner == "slurm" && launch::is_preempted(process_environment());
}

void JobLauncher::tell(const std::string& sentence) { say(fmt::format("peal: {}\n", sentence)); }

void JobLauncher::give_up(const std::string& sentence) {
  tell(sentence);
  if (end_.first_failure.empty()) {
    end_.cause = EndCause::kNotStarted;
    end_.first_failure = sentence;
  } else {
    end_.reason += (end_.reason.empty() ? "" : "; ") + sentence;
  }
}

void JobLauncher::interrupted(int signal, const std::string& sentence) {
  tell(sentence);
  end_ = {.cause = EndCause::kCancelled,
          .first_failure = fmt::format("its launcher was ended by {}", signal_name(signal))};
}

void JobLauncher::wait(const std::string& sentence) {
  tell(sentence);
  record_.wait(sentence);
}

void JobLauncher::restart(const std::string& sentence) {
  tell(sentence);
  record_.restart(end_.first_failure, sentence);
}

void JobLauncher::preempted(const std::string& sentence) {
  tell(sentence);
  record_.wait(sentence);
  const std::string own = end_.first_failure.empty() ? "" : ". " + end_.first_failure;
  end_.cause = EndCause::kPreempted;
  end_.first_failure = "Slurm has preempted the job" + own;
}

agents::AgentsOptions JobLauncher::agents_options(const std::string& id) const {
  const bool starts_here = job_.directory.empty() || runs_only_in_containers(job_);
  const auto container_engine = inherited_.find(containers::kEngineVariable);
  Variables environment = inherited_;
  for (const auto& [name, value] : job_.env) environment.insert_or_assign(name, value);
  return {.engine = engine_of(job_, submission_, given_),
          .begin = {.job = id,
                    .commands = {},
                    .environment = std::move(environment),
                    .directory = starts_here ? submission_.directory : job_.directory,
                    .grace = job_.grace,
                    .silence = agents::kAgentPatience,
                    .container_engine =
                        container_engine == inherited_.end() ? "" : container_engine->second},
          .files = files_of(job_),
          .version = version_,
          .patience = {.start = job_.start_timeout}};
}

AttemptEnd JobLauncher::run(const BeginAttempt& attempt, int restarts) {
  const int number = first_attempt_ + restarts;
  const ProcessPlan planned = plan(attempt.hosts, {});
  const NewJobContext made = make_job_context();
  agents::Agents agents(agents_options(made.job.id), signals_);
  AttemptEnd end = connect(agents, planned, number);
  if (end.signal != 0 || end.exit_code != 0) return end;
  if (const auto refusal = refusal_of(agents)) return refuse(*refusal, number);
  return start(attempt, number, made, agents);
}

/// Returns the signal or the exit code if the job must end; both are 0 if all hosts have answered.
AttemptEnd JobLauncher::connect(agents::Agents& agents, const ProcessPlan& planned, int number) {
  record_.begin(number, planned);
  for (const std::string& host : hosts_of(planned)) agents.add(host, needs_on(host, planned));
  AttemptEnd end;
  agents.await_all([&] {
    end.signal = signals_.take_end();
    if (end.signal == 0) end.exit_code = look();
    return end.signal != 0 || end.exit_code != 0;
  });
  return end;
}

AttemptEnd JobLauncher::refuse(const agents::Refusal& refusal, int number) {
  say("peal: " + refusal.text);
  AttemptEnd end = agents::end_of(refusal, number);
  // The failure of the attempt before stays the failure of the job.
  if (end.next == AfterAttempt::kRetry && !end_.first_failure.empty()) return end;
  end_ = {.cause = EndCause::kNotStarted, .first_failure = as_sentence(refusal.text)};
  return end;
}

void JobLauncher::say_about(const agents::AgentHost& host) const {
  const agents::Ready& facts = host.facts();
  if (!facts.notice.empty()) say(fmt::format("peal: {}: {}\n", host.name(), facts.notice));
  const std::string missing = missing_cpus(job_, host.name(), facts.cores);
  if (!missing.empty()) say(fmt::format("peal: {}\n", missing));
}

LaunchOptions JobLauncher::options_of(const ProcessPlan& plan, int number) const {
  LaunchOptions options{.command = {},
                        .ranks = static_cast<int>(plan.processes.size()),
                        .labels = Labels::kNone,
                        .variables = {},
                        .log_directory = folder_.attempt_directory(number),
                        .time_limit = time_left(),
                        .allocation_end = allocation_end_,
                        .warn_before = job_.warn_before,
                        .grace = job_.grace};
  for (const PlannedProcess& process : plan.processes) {
    options.hidden_out.push_back(process.rank);
    options.hidden_err.push_back(process.rank);
    if (process.role == job_.success_role) options.deciding.push_back(process.rank);
  }
  return options;
}

AttemptEnd JobLauncher::start(const BeginAttempt& attempt,
                              int number,
                              const NewJobContext& made,
                              agents::Agents& agents) {
  std::vector<agents::Ready> hosts;
  std::map<std::string, agents::Ready> facts;
  for (int i = 0; i < agents.count(); ++i) {
    hosts.push_back(agents.host(i).facts());
    facts.emplace(agents.host(i).name(), hosts.back());
    say_about(agents.host(i));
  }
  const MasterAddress master{agents::address_of_rank_0(hosts), hosts.front().port};
  const ProcessPlan planned = plan(attempt.hosts, master);
  const auto ranks = job_ranks(job_, planned, made.job, number, facts, inherited_);
  const LaunchOptions options = options_of(planned, number);
  const Flights flights({});
  LaunchReport result = launch::run(
      options,
      ranks,
      target_of(STDOUT_FILENO),
      target_of(STDERR_FILENO),
      signals_,
      [&] { return std::make_unique<agents::AgentGuard>(agents, Starts::kAtOnce); },
      {.folder = flights.folder(), .job = made.job.id},
      &record_);
  if (!all_went_well(result)) {
    agents.collect_records(flights.folder(), options.ranks, agents::kRecordsLimit);
  }
  AttemptEnd end = report(result, flights, made.job.id, options);
  const bool has_ended_agents = agents::may_be_preempted(agents);
  end.may_be_preempted |= has_ended_agents;
  // Slurm ends a job by SIGTERM to its ranks, its agents and its launcher, in any order.
  const ProcessEnd* const failure = main_failure(result);
  const bool is_asked = failure != nullptr && shell_code(failure->status) == kSignalBase + SIGTERM;
  if (has_ended_agents && is_asked && submission_.runner == "slurm") {
    end_.cause = EndCause::kCancelled;
  }
  return end;
}

AttemptEnd JobLauncher::report(LaunchReport& report,
                               const Flights& flights,
                               const std::string& id,
                               const LaunchOptions& options) {
  // Slurm passes a request to cancel on as a signal, too.
  if (report.signal != 0 && read_cancel_request(folder_)) report.was_cancelled = true;
  report.post_mortem = examine(report, flights.place(), id, options);
  say(describe(report));
  end_ = {.cause = cause_of(report)};
  if (report.post_mortem) end_.records = report.post_mortem->records;
  if (const ProcessEnd* failure = main_failure(report)) {
    end_.first_failure = record_.describe(*failure);
    end_.failed_rank = failure->rank;
    end_.last_lines = failure->last_lines;
    if (report.post_mortem) end_.reason = report.post_mortem->sentence;
  } else if (exit_code(report) != 0) {
    end_.first_failure = as_sentence(describe(report));
  }
  return end_of(report);
}

void JobLauncher::finish(int exit_code) {
  end_.exit_code = exit_code;
  end_.state = exit_code == 0 ? JobState::kSucceeded : JobState::kFailed;
  if (exit_code == kCancelled && read_cancel_request(folder_)) {
    end_ = {.state = JobState::kCancelled,
            .reason = "a user has cancelled it",
            .exit_code = exit_code,
            .cause = EndCause::kCancelled};
  }
  if (exit_code == kTimedOut && time_left() == Timeout(0)) {
    end_ = {
        .state = JobState::kCancelled,
        .reason = fmt::format("it ran longer than max_run_time, {} s", job_.max_run_time->count()),
        .exit_code = exit_code,
        .cause = EndCause::kTimeLimit};
  }
  if (submission_.runner == "slurm") end_.requeues = requeues();
  record_.finish(end_);
}

}  // namespace

int run_submitted_job(const jobs::JobFolder& folder, const std::string& version) {
  return JobLauncher(folder, version).run_to_the_end();
}

}  // namespace peal::launch::submitted
