// The variables of launchers that start one process on each node. Read for a `peal run` on each
// node, and for a program that is itself the only rank of its node.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "peal/base/count_range.h"
#include "peal/config/environment.h"
#include "peal/rendezvous/number_variable.h"

namespace peal::rendezvous {

/// torch's default, for launchers that give no port.
inline constexpr std::uint16_t kDefaultMasterPort = 29500;

struct NodeVariables {
  std::string launcher;  // "SkyPilot"
  Number nodes;
  Number node;
  std::string master{};  // the host of node 0; empty: another variable may name it
  std::optional<std::uint16_t> port{};
  std::string job{};  // the name of the job; may be empty
};

/// The variables of one launcher; nothing if they are not set.
/// Errors: usage, which names a wrong or missing variable.
std::optional<NodeVariables> torchrun_variables(const Environment& environment);  // PET_*
std::optional<NodeVariables> dstack_variables(const Environment& environment);
std::optional<NodeVariables> skypilot_variables(const Environment& environment);
/// Of CLUSTER_SPEC or TF_CONFIG.
std::optional<NodeVariables> cluster_variables(const Environment& environment);

/// The first of the above that is set. Errors: as above.
std::optional<NodeVariables> any_node_variables(const Environment& environment);

/// MIN and MAX of "MIN:MAX"; "4" means 4:4. Errors: usage. `source`: "--nnodes".
CountRange parse_node_range(const std::string& text, const std::string& source);

/// A host and a port of "host:port", "host" or "[::1]:port". Port 0 means any port: then
/// the result has no port. Errors: usage for a wrong port.
struct HostPort {
  std::string host;
  std::optional<std::uint16_t> port;
};
HostPort parse_endpoint(const std::string& text, const std::string& source);

}  // namespace peal::rendezvous
