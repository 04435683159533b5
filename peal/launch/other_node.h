// Finds out whether the ranks of this node failed because of another node. The launcher of this
// node has no records of other nodes. Called by post_mortem.cpp.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "peal/base/units.h"
#include "peal/launch/options.h"
#include "peal/observe/flight_file.h"
#include "peal/observe/why.h"

namespace peal::launch {

struct CauseOnOtherNode {
  Rank rank = 0;  // the likely cause
  int node = 0;   // its node
  /// The sentence for the report: the diagnosis, or the error with which a rank of this node has
  /// noticed the loss of the other rank.
  std::string sentence{};
  std::vector<Rank> victims{};  // of this node: they have lost or missed ranks of other nodes
};

/// The cause, if a rank of this node has lost or has waited for a rank of another node, and no rank
/// of this node is the cause. Otherwise nothing, also if this is the only node. `flights` and
/// `diagnosis`: from the records of this node.
std::optional<CauseOnOtherNode> cause_on_other_node(const observe::Diagnosis& diagnosis,
                                                    std::span<const observe::Flight> flights,
                                                    const LaunchOptions& options);

}  // namespace peal::launch
