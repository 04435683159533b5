// The nodes of a job, read from TensorFlow's variables: CLUSTER_SPEC, else TF_CONFIG. Managed
// services set these for PyTorch too. Used when no other variable names the node or the master.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "peal/config/environment.h"

namespace peal::rendezvous {

struct ClusterSpec {
  std::string variable;                    // "TF_CONFIG"
  int nodes = 0;                           // that train
  std::optional<int> node = {};            // of this process; nothing: not in the text
  std::string master = {};                 // the host of node 0
  std::optional<std::uint16_t> port = {};  // on the master
};

/// The nodes in this order: master or chief, workers; or the worker pools. Parameter servers and
/// evaluators are not nodes of the training.
/// Nothing without such a variable, or if the variable names no node.
/// Errors: usage; the text names the variable: not JSON, malformed, or this process is not one of
///   the nodes.
std::optional<ClusterSpec> read_cluster_spec(const Environment& environment);

}  // namespace peal::rendezvous
