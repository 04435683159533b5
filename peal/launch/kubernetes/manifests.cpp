#include "peal/launch/kubernetes/manifests.h"

#include <chrono>
#include <set>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/launch/kubernetes/check_job.h"
#include "peal/launch/kubernetes/names.h"
#include "peal/launch/kubernetes/pod_parts.h"
#include "peal/launch/kubernetes/variables.h"

namespace peal::launch::kubernetes {
namespace {

Json service(const Job& job, const ManifestOptions& options) {
  Json object = {{"apiVersion", "v1"}, {"kind", "Service"}};
  object["metadata"] = metadata(job_name(options.id), job, options);
  // The name of a pod must resolve before the pod is ready: a master is not ready while it waits
  // for
  // its workers.
  object["spec"] = {
      {"clusterIP", "None"},
      {"publishNotReadyAddresses", true},
      {"selector", {{kJobLabel, job_name(options.id)}}},
  };
  return object;
}

/// What a failed pod means for its Indexed Job.
Json failure_policy(const Job& job) {
  const Json disruption = {{"type", "DisruptionTarget"}, {"status", "True"}};
  const Json ignored = {{"action", "Ignore"}, {"onPodConditions", Json::array({disruption})}};
  Json fatal = {{"containerName", kContainer}};
  if (job.restarts.most == 0) {
    fatal["operator"] = "NotIn";
    fatal["values"] = {0};
  } else {
    // A command that does not exist or cannot be executed: a restart changes nothing.
    fatal["operator"] = "In";
    fatal["values"] = {126, 127, 128};
  }
  const Json failed = {{"action", "FailJob"}, {"onExitCodes", fatal}};
  return {{"rules", Json::array({ignored, failed})}};
}

/// A role that decides the result may not be named: then all roles decide.
bool decides_result(const Job& job, const Role& role) {
  return job.success_role.empty() || job.success_role == role.name;
}

Json container(const Job& job, const Role& role, const Process& process) {
  Json result = {{"name", kContainer}, {"image", role.image}};
  if (!job.directory.empty()) result["workingDir"] = job.directory;
  set_process(result, process);
  if (const Json needs = resources(role.resources); !needs.empty()) result["resources"] = needs;
  result["volumeMounts"] = Json::array({{{"name", "shm"}, {"mountPath", "/dev/shm"}}});
  return result;
}

Json pod_spec(const NodeGroup& group, const Process& process, const ManifestOptions& options) {
  const Job& job = group.job;
  return {
      {"restartPolicy", "Never"},
      {"subdomain", job_name(options.id)},
      // Kubernetes would add variables for each Service: one named "master" sets MASTER_PORT.
      {"enableServiceLinks", false},
      {"terminationGracePeriodSeconds", std::chrono::ceil<std::chrono::seconds>(job.grace).count()},
      {"containers", Json::array({container(job, group.role(), process)})},
      {"volumes", Json::array({shared_memory(group.role().resources)})},
  };
}

Json indexed_job(const NodeGroup& group, const Process& process, const ManifestOptions& options) {
  const Job& job = group.job;
  const Role& role = group.role();
  const int nodes = group.nodes;
  Json labels = labels_of(job, options);
  labels[kRoleLabel] = safe_name(role.name, 63);

  Json object = {{"apiVersion", "batch/v1"}, {"kind", "Job"}};
  object["metadata"] = metadata(group.name(options.id), job, options);
  object["metadata"]["labels"] = labels;
  Json& annotations = object["metadata"]["annotations"];
  annotations[kRoleAnnotation] = role.name;
  annotations[kFirstRankAnnotation] = fmt::format("{}", group.first_rank);
  annotations[kFirstIndexAnnotation] = fmt::format("{}", group.first_index);
  annotations[kRanksAnnotation] = fmt::format("{}", role.ranks_per_node);
  annotations[kDecidesAnnotation] = decides_result(job, role) ? "true" : "false";

  Json spec = {{"completionMode", "Indexed"}, {"completions", nodes}, {"parallelism", nodes}};
  // The restarts of each node. A node that fails after its last restart ends the job.
  spec["backoffLimitPerIndex"] = job.restarts.most;
  spec["maxFailedIndexes"] = 0;
  spec["podReplacementPolicy"] = "Failed";  // two pods with one rank must not run at once
  spec["podFailurePolicy"] = failure_policy(job);
  if (group.role_index == 0 && job.success_role == role.name) {
    const std::string indexes = nodes == 1 ? "0" : fmt::format("0-{}", nodes - 1);
    spec["successPolicy"] = {{"rules", Json::array({{{"succeededIndexes", indexes}}})}};
  }
  if (job.max_run_time) spec["activeDeadlineSeconds"] = job.max_run_time->count();
  spec["template"] = {{"metadata", {{"labels", labels}}},
                      {"spec", pod_spec(group, process, options)}};
  object["spec"] = spec;
  return object;
}

/// Single nodes of a role "a" are "a-0" and so on, which may be the name of another role.
void check_is_new(std::set<std::string>& names, const std::string& name) {
  if (names.insert(name).second) return;
  throw Error(
      ErrorKind::kUsage,
      fmt::format("two roles of the job need the name {} in Kubernetes: rename one of them", name));
}

}  // namespace

std::vector<Json> manifests(const Job& job, const ManifestOptions& options) {
  check_for_kubernetes(job);
  std::vector<Process> processes;
  std::vector<Json> jobs;
  std::set<std::string> names;
  for (const NodeGroup& group : node_groups(job)) {
    processes.push_back(process_of(group, options));
    jobs.push_back(indexed_job(group, processes.back(), options));
    check_is_new(names, group.name(options.id));
  }
  std::vector<Json> objects = {service(job, options), secret(job, options, processes)};
  objects.insert(objects.end(), jobs.begin(), jobs.end());
  return objects;
}

std::string to_text(const std::vector<Json>& objects) {
  std::string text;
  for (const Json& object : objects) text += object.dump(2) + "\n";
  return text;
}

std::string to_shown_text(std::vector<Json> objects) {
  for (Json& object : objects) {
    if (object["kind"] != "Secret") continue;
    for (Json& text : object["stringData"]) text = "(hidden)";
  }
  return to_text(objects);
}

std::vector<std::string> unused_fields(const Job& job) {
  std::vector<std::string> sentences;
  if (job.priority != 0) {
    sentences.push_back(
        "priority is not used: Kubernetes takes the name of a PriorityClass instead of a number");
  }
  if (job.spare_nodes != 0) {
    sentences.push_back("spare_nodes is not used: Kubernetes replaces a lost node by any free one");
  }
  if (job.start_timeout != Job{}.start_timeout) {
    sentences.push_back(
        "start_timeout is not used: Kubernetes waits for free nodes without a limit; max_run_time "
        "limits the whole job");
  }
  if (job.warn_before) {
    sentences.push_back(
        "warn_before is not used: Kubernetes gives no warning before max_run_time. At "
        "max_run_time, it sends SIGTERM, which should_stop() notes too, and gives the processes "
        "their grace");
  }
  if (job.restarts.most > 0 && (job.restarts.first_pause != Restarts{}.first_pause ||
                                job.restarts.longest_pause != Restarts{}.longest_pause)) {
    sentences.push_back(
        "the pauses of restarts are not used: Kubernetes waits 10 s before the first restart and "
        "doubles the time with each");
  }
  return sentences;
}

}  // namespace peal::launch::kubernetes
