#include "peal/launch/kubernetes/cluster_spec.h"

#include <array>
#include <cstddef>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "peal/launch/kubernetes/names.h"

namespace peal::launch::kubernetes {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kTensorFlowPort = 2222;
constexpr std::string_view kIndex = "@index@";  // replaced at the end, because JSON quotes texts
/// What the worker pools of Vertex AI are for TensorFlow, by their place.
constexpr std::array<std::string_view, 4> kPools = {"chief", "worker", "ps", "evaluator"};

std::string tensorflow_name(const Job& job, const Role& role) {
  if (job.form != JobForm::kWorkerPoolSpecs) return role.name;
  for (std::size_t i = 0; i < kPools.size(); ++i) {
    if (role.name == fmt::format("workerpool{}", i)) return std::string(kPools[i]);
  }
  return role.name;
}

Json hosts_of(std::string_view id, const Role& role) {
  Json hosts = Json::array();
  for (int index = 0; index < role.nodes.most; ++index) {
    hosts.push_back(
        fmt::format("{}:{}", host_name(id, role.name, role.nodes.most, index), kTensorFlowPort));
  }
  return hosts;
}

std::string text_of(const Json& cluster, const std::string& type, std::string_view index) {
  const Json whole = {{"cluster", cluster},
                      {"task", {{"type", type}, {"index", kIndex}}},
                      {"environment", "cloud"}};
  std::string text = whole.dump();
  const std::string quoted = fmt::format("\"{}\"", kIndex);
  return text.replace(text.find(quoted), quoted.size(), index);
}

}  // namespace

std::string cluster_spec(const Job& job,
                         std::string_view id,
                         const Role& role,
                         std::string_view index) {
  Json cluster;
  for (const Role& other : job.roles) cluster[other.name] = hosts_of(id, other);
  return text_of(cluster, role.name, index);
}

std::string tf_config(const Job& job,
                      std::string_view id,
                      const Role& role,
                      std::string_view index) {
  Json cluster;
  for (const Role& other : job.roles) {
    const std::string name = tensorflow_name(job, other);
    if (name != "evaluator") cluster[name] = hosts_of(id, other);
  }
  return text_of(cluster, tensorflow_name(job, role), index);
}

}  // namespace peal::launch::kubernetes
