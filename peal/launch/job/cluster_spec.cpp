#include "peal/launch/job/cluster_spec.h"

#include <array>
#include <cstddef>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace peal::launch {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kPoolTasks = {{
    {"workerpool0", "chief"},
    {"workerpool1", "worker"},
    {"workerpool2", "ps"},
    {"workerpool3", "evaluator"},
}};

/// Whether trainingInput has useChiefInTfConfig: true.
bool asks_for_chief(const std::string& document) {
  const Json json = Json::parse(document, nullptr, false);
  return json.is_object() && json.contains("useChiefInTfConfig") &&
         json["useChiefInTfConfig"] == Json(true);
}

}  // namespace

ClusterSpec::ClusterSpec(const Job& job, std::vector<std::vector<std::string>> addresses)
    : job_(job) {
  const bool has_pools = job.form == JobForm::kWorkerPoolSpecs;
  uses_chief_ = has_pools || asks_for_chief(job.document);
  Json cluster = Json::object();
  Json tf_cluster = Json::object();
  for (std::size_t i = 0; i < job.roles.size(); ++i) {
    const Role& role = job.roles[i];
    if (role.in_world) tf_cluster[tf_name(role.name)] = addresses[i];
    cluster[role.name] = std::move(addresses[i]);
  }
  cluster_ = cluster.dump();
  tf_cluster_ = tf_cluster.dump();
  described_ = has_pools ? Json(job.document).dump() : job.document;
}

std::string ClusterSpec::tf_name(const std::string& role) const {
  for (const auto& [pool, task] : kPoolTasks) {
    if (role == pool) return std::string(task);
  }
  return role == "master" && uses_chief_ ? "chief" : role;
}

std::map<std::string, std::string> ClusterSpec::variables(std::size_t role, int place) const {
  const std::string& name = job_.roles[role].name;
  const Json task = {{"type", name}, {"index", place}};
  Json tf_task = {{"type", tf_name(name)}, {"index", place}};
  if (job_.form == JobForm::kTrainingInput) tf_task["cloud"] = "";
  constexpr auto kText = R"({{"cluster":{},"environment":"cloud","task":{},"job":{}}})";
  return {{"CLUSTER_SPEC", fmt::format(kText, cluster_, task.dump(), described_)},
          {"TF_CONFIG", fmt::format(kText, tf_cluster_, tf_task.dump(), described_)}};
}

}  // namespace peal::launch
