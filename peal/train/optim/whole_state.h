// The whole state of a sharded optimizer from its parts on the ranks, and back. Called by
// ShardedOptimizer.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <torch/optim/optimizer.h>

#include "peal/base/clock.h"
#include "peal/base/units.h"
#include "peal/group/process_group.h"
#include "peal/train/optim/optimizer_state.h"

namespace peal::train {

using FieldsByName = std::map<std::string, OptimizerState::Fields>;

/// The fields of all ranks: on every rank, or only on the rank `to`, and nothing on others. The
/// tensors are copies.
/// Order: collective.
/// Errors: those of the operations.
/// Cost: two small operations, and a coalesced broadcast for each rank and type. For one rank
///   instead one message for each tensor.
FieldsByName exchange_fields(ProcessGroup& group,
                             const FieldsByName& own,
                             std::optional<Rank> to,
                             Timeout timeout);

/// The part of a whole state that belongs to the parameters of `local`.
OptimizerState part_of_state(const OptimizerState& state,
                             const torch::optim::Optimizer& local,
                             const NamedParameters& named);

}  // namespace peal::train
