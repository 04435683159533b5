#include "peal/launch/kubernetes/manifests.h"

#include <chrono>

#include <fmt/format.h>

#include "peal/launch/kubernetes/check_job.h"
#include "peal/launch/kubernetes/names.h"
#include "peal/launch/kubernetes/pod_parts.h"
#include "peal/launch/kubernetes/variables.h"

namespace peal::launch::kubernetes {
namespace {

Json service(const Job& job, const ManifestOptions& options) {
  Json object = {{"apiVersion", "v1"}, {"kind", "Service"}};
  object["metadata"] = metadata(job_name(options.id), job, options);
  // Names of pods resolve before the pods are ready: a master that waits for its workers is not.
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

Json container(const Job& job, const PlacedRole& place, const ManifestOptions& options) {
  const Role& role = place.role;
  std::vector<std::string> exports;
  if (needs_shell(role, place.first_rank)) {
    for (const char* const name : {"RANK", "GROUP_RANK"}) {
      exports.push_back(fmt::format("{}=$((JOB_COMPLETION_INDEX + {}))", name, place.first_rank));
    }
  }
  Json result = {{"name", kContainer}, {"image", role.image}};
  set_words(result, job, role, exports);
  if (!job.directory.empty()) result["workingDir"] = job.directory;
  result["env"] = variables(job, place, options);
  if (const Json needs = resources(role.resources); !needs.empty()) result["resources"] = needs;
  result["volumeMounts"] = Json::array({{{"name", "shm"}, {"mountPath", "/dev/shm"}}});
  return result;
}

Json pod_spec(const Job& job, const PlacedRole& place, const ManifestOptions& options) {
  return {
      {"restartPolicy", "Never"},
      {"subdomain", job_name(options.id)},
      // Kubernetes would add variables for each Service: one named "master" sets MASTER_PORT.
      {"enableServiceLinks", false},
      {"terminationGracePeriodSeconds", std::chrono::ceil<std::chrono::seconds>(job.grace).count()},
      {"containers", Json::array({container(job, place, options)})},
      {"volumes", Json::array({shared_memory(place.role.resources)})},
  };
}

Json indexed_job(const Job& job, const PlacedRole& place, const ManifestOptions& options) {
  const Role& role = place.role;
  const int nodes = role.nodes.most;
  Json labels = labels_of(job, options);
  labels[kRoleLabel] = safe_name(role.name, 63);

  Json object = {{"apiVersion", "batch/v1"}, {"kind", "Job"}};
  object["metadata"] = metadata(role_job_name(options.id, role.name, nodes), job, options);
  object["metadata"]["labels"] = labels;
  Json& annotations = object["metadata"]["annotations"];
  annotations[kRoleAnnotation] = role.name;
  annotations[kFirstRankAnnotation] = fmt::format("{}", place.first_rank);
  annotations[kDecidesAnnotation] = decides_result(job, role) ? "true" : "false";

  Json spec = {{"completionMode", "Indexed"}, {"completions", nodes}, {"parallelism", nodes}};
  spec["backoffLimit"] = job.restarts.most * nodes;  // it counts the failures of all nodes
  spec["podReplacementPolicy"] = "Failed";           // two pods with one rank must not run at once
  spec["podFailurePolicy"] = failure_policy(job);
  if (&role == &job.roles.front() && job.success_role == role.name) {
    const std::string indexes = nodes == 1 ? "0" : fmt::format("0-{}", nodes - 1);
    spec["successPolicy"] = {{"rules", Json::array({{{"succeededIndexes", indexes}}})}};
  }
  if (job.max_run_time) spec["activeDeadlineSeconds"] = job.max_run_time->count();
  spec["template"] = {{"metadata", {{"labels", labels}}}, {"spec", pod_spec(job, place, options)}};
  object["spec"] = spec;
  return object;
}

}  // namespace

std::vector<Json> manifests(const Job& job, const ManifestOptions& options) {
  check_for_kubernetes(job);
  std::vector<Json> objects = {service(job, options), secret(job, options)};
  for (const PlacedRole& place : placed_roles(job)) {
    objects.push_back(indexed_job(job, place, options));
  }
  return objects;
}

std::string to_text(const std::vector<Json>& objects) {
  std::string text;
  for (const Json& object : objects) text += object.dump(2) + "\n";
  return text;
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
  if (job.restarts.most > 0 && (job.restarts.first_pause != Restarts{}.first_pause ||
                                job.restarts.longest_pause != Restarts{}.longest_pause)) {
    sentences.push_back(
        "the pauses of restarts are not used: Kubernetes waits 10 s before the first restart and "
        "doubles the time with each");
  }
  return sentences;
}

}  // namespace peal::launch::kubernetes
