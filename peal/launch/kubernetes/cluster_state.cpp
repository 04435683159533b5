// Reads the answers of kubectl.
#include "peal/launch/kubernetes/cluster_state.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <initializer_list>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "peal/base/error.h"
#include "peal/base/parse_number.h"
#include "peal/launch/kubernetes/manifests.h"

namespace peal::launch::kubernetes {
namespace {

using Tree = nlohmann::json;

constexpr const char* kIndex = "batch.kubernetes.io/job-completion-index";
constexpr int kMostNodes = 100'000;  // of Kubernetes, for an Indexed Job
constexpr int kMostRanks = 10'000;   // of a node
constexpr const char* kOwner = "batch.kubernetes.io/job-name";

/// The part of a tree at a path such as {"status", "phase"}; null if it does not exist.
const Tree& at(const Tree& tree, std::initializer_list<const char*> path) {
  static const Tree kNothing;
  const Tree* place = &tree;
  for (const char* const key : path) {
    if (!place->is_object()) return kNothing;
    const auto found = place->find(key);
    if (found == place->end()) return kNothing;
    place = &*found;
  }
  return *place;
}

std::string text_at(const Tree& tree, std::initializer_list<const char*> path) {
  const Tree& found = at(tree, path);
  return found.is_string() ? found.get<std::string>() : std::string();
}

int number_at(const Tree& tree, std::initializer_list<const char*> path, int otherwise) {
  const Tree& found = at(tree, path);
  return found.is_number_integer() ? found.get<int>() : otherwise;
}

Tree parse(std::string_view text) {
  Tree tree = Tree::parse(text, nullptr, false);
  if (!tree.is_object()) {
    throw Error(ErrorKind::kResource,
                "kubectl has printed something that is not JSON: check its version with `kubectl "
                "version`");
  }
  return tree;
}

/// The condition of this type that holds; null if none.
const Tree& condition(const Tree& thing, std::string_view type) {
  static const Tree kNothing;
  for (const Tree& each : at(thing, {"status", "conditions"})) {
    if (text_at(each, {"type"}) == type && text_at(each, {"status"}) == "True") return each;
  }
  return kNothing;
}

void read_scheduling(const Tree& thing, Pod& pod) {
  pod.is_placed = !pod.host.empty();
  for (const Tree& each : at(thing, {"status", "conditions"})) {
    if (text_at(each, {"type"}) != "PodScheduled") continue;
    if (text_at(each, {"status"}) == "True") pod.is_placed = true;
    if (text_at(each, {"status"}) == "False") {
      pod.word = text_at(each, {"reason"});
      pod.message = text_at(each, {"message"});
    }
  }
}

void read_container(const Tree& container, Pod& pod) {
  pod.restarts = number_at(container, {"restartCount"}, 0);
  const Tree& waiting = at(container, {"state", "waiting"});
  if (waiting.is_object()) {
    pod.word = text_at(waiting, {"reason"});
    pod.message = text_at(waiting, {"message"});
  }
  const Tree& ended = at(container, {"state", "terminated"});
  if (ended.is_object()) {
    pod.word = text_at(ended, {"reason"});
    pod.message = text_at(ended, {"message"});
    pod.finished = text_at(ended, {"finishedAt"});
    pod.exit_code = number_at(ended, {"exitCode"}, 0);
  }
}

Pod read_pod(const Tree& thing) {
  Pod pod{.name = text_at(thing, {"metadata", "name"}),
          .phase = text_at(thing, {"status", "phase"}),
          .created = text_at(thing, {"metadata", "creationTimestamp"}),
          .host = text_at(thing, {"spec", "nodeName"}),
          .is_deleted = at(thing, {"metadata", "deletionTimestamp"}).is_string()};
  read_scheduling(thing, pod);
  for (const Tree& container : at(thing, {"status", "containerStatuses"})) {
    read_container(container, pod);
  }
  // The kubelet evicts a pod, or its host is lost: then the pod itself has a reason.
  if (const std::string reason = text_at(thing, {"status", "reason"}); !reason.empty()) {
    pod.word = reason;
    pod.message = text_at(thing, {"status", "message"});
  }
  for (const Tree& container : at(thing, {"spec", "containers"})) {
    pod.memory_limit = text_at(container, {"resources", "limits", "memory"});
  }
  return pod;
}

/// Kubernetes decides about a Job first, then ends its pods, and then says that the Job has ended.
void read_end(const Tree& thing, RoleJob& job) {
  constexpr std::array<std::pair<const char*, const char*>, 4> kEnds = {
      {{"SuccessCriteriaMet", "Complete"},
       {"Complete", "Complete"},
       {"FailureTarget", "Failed"},
       {"Failed", "Failed"}}};
  for (const auto& [type, end] : kEnds) {
    const Tree& found = condition(thing, type);
    if (!found.is_object()) continue;
    job.end = end;
    job.end_reason = text_at(found, {"reason"});
    job.end_message = text_at(found, {"message"});
    job.end_time = text_at(found, {"lastTransitionTime"});
  }
}

RoleJob read_role_job(const Tree& thing) {
  const Tree& annotations = at(thing, {"metadata", "annotations"});
  RoleJob job{.name = text_at(thing, {"metadata", "name"}),
              .role = text_at(annotations, {kRoleAnnotation}),
              .nodes = number_at(thing, {"spec", "completions"}, 1),
              .decides = text_at(annotations, {kDecidesAnnotation}) != "false",
              .is_suspended = at(thing, {"spec", "suspend"}) == true,
              .is_deleted = at(thing, {"metadata", "deletionTimestamp"}).is_string()};
  if (job.role.empty()) job.role = "node";  // of a TrainJob
  const auto number = [&](const char* name) {
    return try_parse_number<int>(text_at(annotations, {name})).value_or(0);
  };
  job.first_rank = number(kFirstRankAnnotation);
  job.first_index = number(kFirstIndexAnnotation);
  job.ranks_per_node = std::clamp(number(kRanksAnnotation), 1, kMostRanks);
  read_end(thing, job);
  job.pods.resize(static_cast<std::size_t>(std::clamp(job.nodes, 0, kMostNodes)));
  return job;
}

/// The index of a pod in its Indexed Job: an annotation since 1.21, a label since 1.28.
std::optional<std::size_t> index_of(const Tree& pod) {
  std::string text = text_at(pod, {"metadata", "annotations", kIndex});
  if (text.empty()) text = text_at(pod, {"metadata", "labels", kIndex});
  const auto number = try_parse_number<int>(text);
  if (!number || *number < 0) return std::nullopt;
  return static_cast<std::size_t>(*number);
}

std::string owner_of(const Tree& pod) {
  const std::string name = text_at(pod, {"metadata", "labels", kOwner});
  return name.empty() ? text_at(pod, {"metadata", "labels", "job-name"}) : name;
}

}  // namespace

std::optional<std::chrono::sys_time<std::chrono::milliseconds>> try_parse_time(
    const std::string& text) {
  std::tm parts{};
  const char* const end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  if (end == nullptr || *end != '\0') return std::nullopt;
  return std::chrono::floor<std::chrono::milliseconds>(
      std::chrono::system_clock::from_time_t(::timegm(&parts)));
}

std::vector<RoleJob> read_role_jobs(std::string_view list) {
  const Tree tree = parse(list);
  std::vector<RoleJob> jobs;
  std::size_t nodes = 0;
  for (const Tree& item : at(tree, {"items"})) {
    if (text_at(item, {"kind"}) != "Job") continue;
    jobs.push_back(read_role_job(item));
    nodes += jobs.back().pods.size();
    if (nodes > kMostNodes) {
      throw Error(
          ErrorKind::kResource,
          fmt::format("the cluster says that the job has more than {} nodes, so it is not a "
                      "job of peal",
                      kMostNodes));
    }
  }
  for (const Tree& item : at(tree, {"items"})) {
    if (text_at(item, {"kind"}) != "Pod") continue;
    const auto owner = std::ranges::find(jobs, owner_of(item), &RoleJob::name);
    const auto index = index_of(item);
    if (owner == jobs.end() || !index || *index >= owner->pods.size()) continue;
    owner->pods[*index].push_back(read_pod(item));
  }
  for (RoleJob& job : jobs) {
    for (std::vector<Pod>& starts : job.pods) std::ranges::stable_sort(starts, {}, &Pod::created);
  }
  std::ranges::stable_sort(jobs, {}, &RoleJob::first_rank);
  return jobs;
}

bool read_train_job(std::string_view list, std::vector<RoleJob>& jobs) {
  const Tree tree = parse(list);
  const Tree& items = at(tree, {"items"});
  if (!items.is_array() || items.empty()) return false;
  const RoleJob end = read_role_job(items.front());
  if (jobs.empty()) {  // its controller has not made them yet
    const int nodes = number_at(items.front(), {"spec", "trainer", "numNodes"}, 1);
    jobs.push_back({.name = end.name, .role = "node", .nodes = nodes});
    jobs.back().pods.resize(static_cast<std::size_t>(std::clamp(nodes, 1, kMostNodes)));
  }
  for (RoleJob& job : jobs) {
    job.is_deleted = job.is_deleted || end.is_deleted;
    if (end.end.empty()) continue;
    job.end = end.end;
    job.end_reason = end.end_reason;
    job.end_message = end.end_message;
    job.end_time = end.end_time;
  }
  return true;
}

}  // namespace peal::launch::kubernetes
