// Which rank owns which parameter of a sharded optimizer. A pure function, called by
// ShardedOptimizer.
#pragma once

#include <span>
#include <vector>

#include "peal/base/units.h"

namespace peal::train {

/// The owner of each parameter. The largest parameter comes first; each goes to the rank with the
/// least bytes so far, of several to the first. `load` has the bytes of each rank, and is brought
/// up to date.
///   load of a rank <= sum / n + (1 - 1 / n) largest, if all loads begin with 0
/// Cost: O(m log m + m n) for m parameters and n ranks.
/// Source: Graham 1969, Bounds on multiprocessing timing anomalies (longest processing time first).
std::vector<Rank> assign_shards(std::span<const Bytes> sizes, std::vector<Bytes>& load);

}  // namespace peal::train
