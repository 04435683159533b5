// Averages sparse gradients, such as those of an embedding: each rank has its own rows.
#pragma once

#include <torch/types.h>

#include "peal/base/clock.h"
#include "peal/group/process_group.h"

namespace peal::train {

///   result = scale * (gradient_0 + gradient_1 + ...), sparse and coalesced, with the same bits on
///   every rank
/// Shape: `gradient` has the shape of `parameter`; it is sparse or dense, or undefined for zero.
///   At least one rank has a sparse gradient.
/// Order: collective.
/// Errors: those of all_gather.
/// Cost: an all_gather of 16 bytes, one of the indices and one of the values of all ranks. Every
///   rank has the entries of all ranks in memory.
torch::Tensor sum_sparse(ProcessGroup& group,
                         const torch::Tensor& gradient,
                         const torch::Tensor& parameter,
                         double scale,
                         Timeout timeout);

}  // namespace peal::train
