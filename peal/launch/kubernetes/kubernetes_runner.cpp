#include "peal/launch/kubernetes/kubernetes_runner.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/printable.h"
#include "peal/launch/kubernetes/cluster_state.h"
#include "peal/launch/kubernetes/kubectl.h"
#include "peal/launch/kubernetes/manifests.h"
#include "peal/launch/kubernetes/names.h"
#include "peal/launch/kubernetes/pod_logs.h"

namespace peal::launch::kubernetes {
namespace {

constexpr const char* kTrainJobs = "trainjobs.trainer.kubeflow.org";
constexpr const char* kSetLabel = "jobset.sigs.k8s.io/jobset-name";
constexpr auto kBetweenLooks = std::chrono::seconds(1);

std::vector<std::string> with_namespace(std::vector<std::string> command,
                                        const std::string& job_namespace) {
  if (!job_namespace.empty()) command.push_back("--namespace=" + job_namespace);
  return command;
}

std::string selector(const char* label, const std::string& id) {
  return fmt::format("--selector={}={}", label, job_name(id));
}

/// Whether `kubectl delete --output=name` has removed something: "job.batch/a", one a line.
bool names_an_object(std::string_view out) { return out.find('/') != std::string_view::npos; }

/// The objects of a job in the cluster.
struct Found {
  std::vector<RoleJob> jobs{};
  bool is_train_job = false;
};

class KubernetesRunner final : public Runner {
 public:
  explicit KubernetesRunner(KubernetesOptions options)
      : options_(std::move(options)),
        kubectl_(with_namespace(options_.kubectl, options_.job_namespace), options_.patience) {}

  std::string start(const Job& job, const StartOptions& start) override;
  JobStatus status(const std::string& id) override;
  void logs(const std::string& id, const LogQuery& query, const LogSink& sink) override;
  CancelResult cancel(const std::string& id) override;
  bool remove_remains(const std::string& id) override {
    return cancel(id) == CancelResult::kCancelled;
  }

 private:
  std::vector<Json> objects_of(const Job& job, const StartOptions& start) const;
  void remove_after_failure(const std::string& id) const;
  bool remove_objects(const std::string& id) const;
  bool remove_train_job(const std::string& id) const;

  /// Returns no jobs if the cluster has no such job.
  Found find(const std::string& id, const Interrupt& interrupt = {}) const;
  Found must_find(const std::string& id, const Interrupt& interrupt = {}) const;
  /// Ends the roles that would continue after the end of the job.
  JobStatus settle(const std::string& id, const Found& found) const;
  void add_last_lines(const std::vector<RoleJob>& jobs, JobStatus& status) const;
  void follow(const std::string& id, const LogQuery& query, const LogSink& sink) const;

  const KubernetesOptions options_;
  const Kubectl kubectl_;
};

std::vector<Json> KubernetesRunner::objects_of(const Job& job, const StartOptions& start) const {
  const ManifestOptions options{.id = start.id,
                                .job_namespace = options_.job_namespace,
                                .secret = start.secret,
                                .runtime = options_.runtime};
  return options_.form == Form::kTrainJob ? train_job_manifests(job, options)
                                          : manifests(job, options);
}

/// Options of kubectl in a job must hold for all calls about it, so the runner needs them from the
/// beginning.
void check_options_of_kubectl(const Job& job, const std::vector<std::string>& command) {
  const auto own = job.engine_options.find("kubernetes");
  if (own == job.engine_options.end()) return;
  for (const std::string& option : own->second) {
    if (std::ranges::find(command, option) != command.end()) continue;
    throw Error(ErrorKind::kUsage,
                fmt::format("engine_options.kubernetes has {}, and the runner was made without it",
                            quoted_beginning(option)));
  }
}

std::string KubernetesRunner::start(const Job& job, const StartOptions& start) {
  check_options_of_kubectl(job, options_.kubectl);
  const std::vector<Json> objects = objects_of(job, start);
  // The first object is created alone: if it exists, another job has this id.
  std::string first = to_text({objects.front()});
  std::string others = to_text({objects.begin() + 1, objects.end()});
  const Wiped wipe_first(first);
  const Wiped wipe_others(others);
  const Answer answer = kubectl_.run({"create", "--filename=-"}, first);
  if (says_already_exists(answer)) {
    throw Error(ErrorKind::kUsage,
                fmt::format("the cluster has a job {} already: choose another id, or remove that "
                            "job with `peal cancel {}`",
                            quoted_beginning(start.id),
                            printable(start.id)));
  }
  const std::string during = fmt::format("start the job {}", quoted_beginning(start.id));
  if (answer.exit_code != 0) throw Error(ErrorKind::kResource, explain(during, answer.err));
  try {
    kubectl_.must(during, {"create", "--filename=-"}, others);
  } catch (...) {
    remove_after_failure(start.id);
    throw;
  }
  return job_name(start.id);
}

void KubernetesRunner::remove_after_failure(const std::string& id) const {
  try {
    remove_objects(id);
    if (options_.form == Form::kTrainJob) remove_train_job(id);
  } catch (const Error&) {  // the first error says more
  }
}

/// Returns whether an object was found.
bool KubernetesRunner::remove_objects(const std::string& id) const {
  // In the foreground an Indexed Job exists until its pods have ended: the status can see that.
  const std::string removed = kubectl_.must(fmt::format("cancel the job {}", quoted_beginning(id)),
                                            {"delete",
                                             "jobs,services,secrets",
                                             selector(kJobLabel, id),
                                             "--cascade=foreground",
                                             "--wait=false",
                                             "--output=name"});
  return names_an_object(removed);
}

bool KubernetesRunner::remove_train_job(const std::string& id) const {
  const std::vector<std::string> words = {"delete",
                                          kTrainJobs,
                                          selector(kJobLabel, id),
                                          "--cascade=foreground",
                                          "--wait=false",
                                          "--output=name"};
  const Answer answer = kubectl_.run(words);
  if (says_unknown_kind(answer)) return false;
  if (answer.exit_code != 0) {
    throw Error(ErrorKind::kResource,
                explain(fmt::format("cancel the job {}", quoted_beginning(id)), answer.err));
  }
  return names_an_object(answer.out);
}

Found KubernetesRunner::find(const std::string& id, const Interrupt& interrupt) const {
  const std::string during = fmt::format("ask for the job {}", quoted_beginning(id));
  const auto list = [&](const char* label) {
    return read_role_jobs(kubectl_.must(
        during, {"get", "jobs,pods", selector(label, id), "--output=json"}, {}, interrupt));
  };
  Found found{.jobs = list(kJobLabel)};
  if (!found.jobs.empty()) return found;
  const Answer answer =
      kubectl_.run({"get", kTrainJobs, selector(kJobLabel, id), "--output=json"}, {}, interrupt);
  if (says_unknown_kind(answer)) return found;
  if (answer.exit_code != 0) throw Error(ErrorKind::kResource, explain(during, answer.err));
  std::vector<RoleJob> jobs;
  if (!read_train_job(answer.out, jobs)) return found;
  found = {.jobs = list(kSetLabel), .is_train_job = true};
  read_train_job(answer.out, found.jobs);
  return found;
}

Found KubernetesRunner::must_find(const std::string& id, const Interrupt& interrupt) const {
  Found found = find(id, interrupt);
  if (found.jobs.empty()) {
    const std::string place = options_.job_namespace.empty()
                                  ? std::string("the namespace of kubectl")
                                  : fmt::format("the namespace {}", options_.job_namespace);
    throw Error(ErrorKind::kUsage,
                fmt::format("no job {} exists in {}: it was cancelled, or it runs in another "
                            "namespace or cluster (see `kubectl get jobs -A -L {}`)",
                            quoted_beginning(id),
                            place,
                            kJobLabel));
  }
  return found;
}

JobStatus KubernetesRunner::settle(const std::string& id, const Found& found) const {
  JobStatus status = status_of(id, found.jobs);
  if (!has_ended(status.state) || found.is_train_job) return status;
  for (const RoleJob& job : found.jobs) {
    if (!job.end.empty() || job.is_suspended || job.is_deleted) continue;
    const Answer answer = kubectl_.run(
        {"patch", "job", job.name, "--type=merge", R"(--patch={"spec":{"suspend":true}})"});
    if (answer.exit_code == 0) {
      end_nodes(job.role, status);
      continue;
    }
    if (!status.reason.empty()) status.reason += "; ";
    status.reason += explain(fmt::format("end role {}, which still runs", job.role), answer.err);
  }
  return status;
}

void KubernetesRunner::add_last_lines(const std::vector<RoleJob>& jobs, JobStatus& status) const {
  if (!status.failed_rank) return;
  try {
    for (const LogSource& source : log_sources(jobs, {.rank = status.failed_rank})) {
      status.last_lines = last_lines_of(kubectl_, source);
    }
  } catch (const Error&) {  // no log exists, or kubectl does not answer
  }
}

JobStatus KubernetesRunner::status(const std::string& id) {
  const Found found = must_find(id);
  JobStatus status = settle(id, found);
  add_last_lines(found.jobs, status);
  return status;
}

void KubernetesRunner::logs(const std::string& id, const LogQuery& query, const LogSink& sink) {
  if (query.follow == Follow::kUntilTheEnd) return follow(id, query, sink);
  const std::vector<RoleJob> jobs = must_find(id, query.interrupt).jobs;
  const LogSink filter = filter_for(jobs, query, sink);
  for (const LogSource& source : log_sources(jobs, query)) {
    copy_log(kubectl_, source, filter);
    let_interrupt(query.interrupt);
  }
}

void KubernetesRunner::follow(const std::string& id,
                              const LogQuery& query,
                              const LogSink& sink) const {
  Found found = must_find(id, query.interrupt);
  LogFollower follower(kubectl_, filter_for(found.jobs, query, sink));
  if (!query.attempt) {  // earlier starts are not shown, but later ones are
    std::vector<LogSource> earlier = sources_to_follow(found.jobs, query);
    const std::vector<LogSource> last = log_sources(found.jobs, {.rank = {}, .attempt = {}});
    std::erase_if(earlier, [&](const LogSource& source) {
      return std::ranges::find(last, source) != last.end();
    });
    follower.skip(earlier);
  }
  while (true) {
    // A job that was cancelled meanwhile has no objects, and its streams end.
    const bool has_ended_now = found.jobs.empty() || has_ended(settle(id, found).state);
    if (!found.jobs.empty()) follower.add(sources_to_follow(found.jobs, query));
    if (has_ended_now && follower.is_idle()) return;
    follower.read_until(Deadline(Clock::now() + kBetweenLooks), query.interrupt);
    found = find(id, query.interrupt);
  }
}

CancelResult KubernetesRunner::cancel(const std::string& id) {
  const bool had_objects = remove_objects(id);
  const bool had_train_job = remove_train_job(id);
  return had_objects || had_train_job ? CancelResult::kCancelled : CancelResult::kNoSuchJob;
}

}  // namespace

std::unique_ptr<Runner> make_kubernetes_runner(KubernetesOptions options) {
  return std::make_unique<KubernetesRunner>(std::move(options));
}

}  // namespace peal::launch::kubernetes
