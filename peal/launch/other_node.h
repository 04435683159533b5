// Finds out whether the failure of a node's ranks was caused on another node, where the launcher
// of this node has no records. Called by post_mortem.cpp.
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
  /// The sentence for the report: the diagnosis, or the error by which a rank of this node has lost
  /// the other rank.
  std::string sentence{};
  std::vector<Rank> victims{};  // of this node: they have lost or missed ranks of other nodes
};

/// Whether a rank of this node has lost another rank, or has waited for it, and no rank of
/// this node is the cause. `flights` and `diagnosis`: by the records that this node has.
/// Nothing if this is the only node.
std::optional<CauseOnOtherNode> cause_on_other_node(const observe::Diagnosis& diagnosis,
                                                    std::span<const observe::Flight> flights,
                                                    const LaunchOptions& options);

}  // namespace peal::launch
