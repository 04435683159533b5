#include "peal/rendezvous/node_variables.h"

#include <array>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/parse_number.h"
#include "peal/base/printable.h"
#include "peal/base/split.h"
#include "peal/rendezvous/cluster_spec.h"
#include "peal/rendezvous/url.h"

namespace peal::rendezvous {
namespace {

/// N of "N" or "N:N".
int parse_node_count(const std::string& text, const std::string& name) {
  const auto colon = text.find(':');
  const std::string least = text.substr(0, colon);
  const auto count = try_parse_number<int>(least);
  const bool is_fixed = colon == std::string::npos || text.substr(colon + 1) == least;
  if (is_fixed && count && *count >= 1) return *count;
  throw Error(ErrorKind::kUsage,
              fmt::format("{} {}: it takes one number of nodes, 1 or more, because the nodes of "
                          "this job are started by something else",
                          name,
                          quoted_beginning(text)));
}

/// The number of this node. A job of one node need not give it.
Number own_number(const Environment& environment, const Number& nodes, const std::string& name) {
  if (const auto node = number_variable(environment, name)) {
    check_range(*node, nodes, "nodes");
    return *node;
  }
  if (nodes.value == 1) return {0, nodes.origin};
  throw Error(ErrorKind::kUsage,
              fmt::format("{} nodes ({}), but {} is not set: set it to the number of this node, 0 "
                          "to {}",
                          nodes.value,
                          nodes.origin,
                          name,
                          nodes.value - 1));
}

}  // namespace

CountRange parse_node_range(const std::string& text, const std::string& source) {
  if (const auto range = parse_count_range(text, source, "nodes")) return *range;
  const auto count = try_parse_number<int>(text);
  if (count && *count >= 1) return {*count, *count};
  throw Error(
      ErrorKind::kUsage,
      fmt::format(
          "{} {}: it takes the number of nodes, 1 or more", source, quoted_beginning(text)));
}

HostPort parse_endpoint(const std::string& text, const std::string& source) {
  const auto bracket = text.rfind(']');
  const auto colon = text.rfind(':');
  const bool is_bare_ipv6 = bracket == std::string::npos && text.find(':') != colon;
  const bool has_port = colon != std::string::npos && !is_bare_ipv6 &&
                        (bracket == std::string::npos || colon > bracket);
  std::string host = has_port ? text.substr(0, colon) : text;
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const std::string number = has_port ? text.substr(colon + 1) : "0";
  const auto port = parse_port(number);
  if (host.empty() || (number != "0" && !port)) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{} {}: it takes the host of node 0 and a port, as in node-0:29500",
                            source,
                            quoted_beginning(text)));
  }
  return {std::move(host), port};
}

/// PET_NNODES is the option --nnodes of torchrun, and so on.
std::optional<NodeVariables> torchrun_variables(const Environment& environment) {
  const auto count = text_variable(environment, "PET_NNODES");
  if (!count) return std::nullopt;
  const Number nodes{parse_node_count(*count, "PET_NNODES"), "PET_NNODES=" + *count};
  NodeVariables found{.launcher = "torchrun's variables",
                      .nodes = nodes,
                      .node = own_number(environment, nodes, "PET_NODE_RANK"),
                      .master = text_variable(environment, "PET_MASTER_ADDR").value_or(""),
                      .port = port_variable(environment, "PET_MASTER_PORT"),
                      .job = text_variable(environment, "PET_RDZV_ID").value_or("")};
  if (const auto endpoint = text_variable(environment, "PET_RDZV_ENDPOINT");
      endpoint && found.master.empty()) {
    const HostPort place = parse_endpoint(*endpoint, "PET_RDZV_ENDPOINT");
    found.master = place.host;
    if (!found.port) found.port = place.port;
  }
  return found;
}

std::optional<NodeVariables> dstack_variables(const Environment& environment) {
  const auto nodes = number_variable(environment, "DSTACK_NODES_NUM");
  if (!nodes) return std::nullopt;
  return NodeVariables{.launcher = "dstack",
                       .nodes = *nodes,
                       .node = own_number(environment, *nodes, "DSTACK_NODE_RANK"),
                       .master = text_variable(environment, "DSTACK_MASTER_NODE_IP").value_or("")};
}

std::optional<NodeVariables> skypilot_variables(const Environment& environment) {
  const auto nodes = number_variable(environment, "SKYPILOT_NUM_NODES");
  if (!nodes) return std::nullopt;
  NodeVariables found{.launcher = "SkyPilot",
                      .nodes = *nodes,
                      .node = own_number(environment, *nodes, "SKYPILOT_NODE_RANK")};
  if (const auto addresses = text_variable(environment, "SKYPILOT_NODE_IPS")) {
    found.master = split(*addresses, '\n').front();  // an address on each line
  }
  return found;
}

std::optional<NodeVariables> cluster_variables(const Environment& environment) {
  const auto spec = read_cluster_spec(environment);
  if (!spec) return std::nullopt;
  if (!spec->node && spec->nodes > 1) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{} names {} nodes, but has no task that says which of them this is: "
                            "set RANK and WORLD_SIZE",
                            spec->variable,
                            spec->nodes));
  }
  return NodeVariables{
      .launcher = spec->variable,
      .nodes = {spec->nodes, fmt::format("{} with {} nodes", spec->variable, spec->nodes)},
      .node = {spec->node.value_or(0), spec->variable},
      .master = spec->master,
      .port = spec->port};
}

std::optional<NodeVariables> any_node_variables(const Environment& environment) {
  for (const auto read :
       {torchrun_variables, dstack_variables, skypilot_variables, cluster_variables}) {
    if (auto found = read(environment)) return found;
  }
  return std::nullopt;
}

}  // namespace peal::rendezvous
