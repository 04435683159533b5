#include "peal/rendezvous/cluster_spec.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "peal/base/error.h"
#include "peal/base/printable.h"
#include "peal/rendezvous/number_variable.h"
#include "peal/rendezvous/url.h"

namespace peal::rendezvous {
namespace {

using Json = nlohmann::json;

Error malformed(const std::string& variable, const std::string& what) {
  return Error(ErrorKind::kUsage,
               fmt::format("{} {}: unset it, or set RANK, WORLD_SIZE and MASTER_ADDR, which come "
                           "before it",
                           variable,
                           what));
}

/// The roles whose nodes train, in the order of the ranks.
std::vector<std::string> roles_of(const Json& cluster) {
  std::vector<std::string> roles = {"master", "chief", "worker"};
  // A JSON object is sorted by its keys, and a job has at most ten pools.
  for (const auto& [role, ignored] : cluster.items()) {
    if (role.starts_with("workerpool")) roles.push_back(role);
  }
  return roles;
}

/// Adds the host and the port of "host:2222".
void set_master(const std::string& address, ClusterSpec& spec) {
  const auto colon = address.rfind(':');
  spec.master = address.substr(0, colon);
  if (colon != std::string::npos) spec.port = parse_port(address.substr(colon + 1));
}

std::optional<ClusterSpec> spec_in(const std::string& variable, const Json& text) {
  const Json& cluster = text.at("cluster");
  const std::string type = text.value("/task/type"_json_pointer, std::string());
  ClusterSpec spec{.variable = variable};
  for (const std::string& role : roles_of(cluster)) {
    const auto addresses = cluster.value(role, std::vector<std::string>());
    if (role == type) {
      const int index = text.at("task").at("index").get<int>();
      if (index < 0 || index >= static_cast<int>(addresses.size())) {
        throw malformed(variable, fmt::format("has no {} {}", printable(role), index));
      }
      spec.node = spec.nodes + index;
    }
    if (spec.nodes == 0 && !addresses.empty()) set_master(addresses.front(), spec);
    spec.nodes += static_cast<int>(addresses.size());
  }
  if (spec.nodes == 0) return std::nullopt;
  if (!type.empty() && !spec.node) {
    throw malformed(variable,
                    fmt::format("says that this is a task of type {}, which does not train",
                                quoted_beginning(type)));
  }
  return spec;
}

}  // namespace

std::optional<ClusterSpec> read_cluster_spec(const Environment& environment) {
  for (const std::string variable : {"CLUSTER_SPEC", "TF_CONFIG"}) {
    const auto text = text_variable(environment, variable);
    if (!text) continue;
    try {
      const Json json = Json::parse(*text);
      if (!json.is_object() || !json.contains("cluster")) continue;
      return spec_in(variable, json);
    } catch (const Json::exception&) {
      throw malformed(variable, "is not the JSON text of a cluster and a task");
    }
  }
  return std::nullopt;
}

}  // namespace peal::rendezvous
