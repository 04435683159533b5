// The options of an operation. Aggregates, for designated initializers:
//   group->all_reduce(data, {.op = ReduceOp::kMax, .timeout = 5s});
// A timeout of kGroupTimeout means the timeout of the group.
#pragma once

#include <span>

#include "peal/base/clock.h"
#include "peal/base/reduce_op.h"
#include "peal/base/units.h"

namespace peal {

/// broadcast, barrier, monitored_barrier, batch_isend_irecv.
struct CallOptions {
  Timeout timeout = kGroupTimeout;
};

/// send, recv, isend, irecv.
struct MessageOptions {
  Tag tag = {};
  Timeout timeout = kGroupTimeout;
};

/// all_reduce, reduce.
struct ReduceOptions {
  ReduceOp op = ReduceOp::kSum;
  Timeout timeout = kGroupTimeout;
};

/// scatter, gather, all_gather.
struct BlockOptions {
  /// The elements of each rank's block, the same list on every rank. Empty: all blocks have the
  /// same size, or a list of buffers gives their sizes.
  std::span<const Elements> counts = {};
  Timeout timeout = kGroupTimeout;
};

/// reduce_scatter.
struct ReduceScatterOptions {
  ReduceOp op = ReduceOp::kSum;
  std::span<const Elements> counts = {};  // as BlockOptions::counts
  Timeout timeout = kGroupTimeout;
};

/// all_to_all.
struct AllToAllOptions {
  /// How many elements this rank sends to each rank, and receives from each rank. Give both or
  /// neither. Empty: all blocks have the same size, or lists of buffers give their sizes.
  std::span<const Elements> to = {};
  std::span<const Elements> from = {};
  Timeout timeout = kGroupTimeout;
};

}  // namespace peal
