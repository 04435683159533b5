// Starts operations on tensors, after it has checked the arguments. Used by operations.cpp and the
// module for Python.
#pragma once

#include <span>
#include <vector>

#include "peal/named/named_operations.h"
#include "peal/train/horovod/operation_options.h"
#include "peal/train/horovod/parts.h"
#include "peal/train/horovod/pending.h"

namespace peal::hvd {

using Waits = named::NamedOperations::Waits;

// Errors of each: usage (before init; this rank is not in the set; a tensor that the operation
// cannot have; a name in flight), unsupported (a type that peal::DType lacks; a layout; a reduction
// that has no meaning for the type). Then no operation has started.

PendingPtr start_allreduce(at::TensorList tensors,
                           Form form,
                           InPlace in_place,
                           const ReductionOptions& options,
                           Waits waits);

PendingPtr start_allgather(at::TensorList tensors,
                           Form form,
                           const OperationOptions& options,
                           Waits waits);

/// `root`: in the world.
PendingPtr start_broadcast(const Tensor& tensor,
                           InPlace in_place,
                           Rank root,
                           const OperationOptions& options,
                           Waits waits);

/// The results are the output and the rows from each rank (int32).
/// `splits`: the rows for each rank, the first rows of the tensor; none: equal blocks.
PendingPtr start_alltoall(const Tensor& tensor,
                          std::span<const std::int64_t> splits,
                          const OperationOptions& options,
                          Waits waits);

PendingPtr start_reducescatter(at::TensorList tensors,
                               Form form,
                               const ReductionOptions& options,
                               Waits waits);

PendingPtr start_sparse_allreduce(const Tensor& tensor,
                                  const ReductionOptions& options,
                                  Waits waits);

PendingPtr start_barrier(const ProcessSet& set, Waits waits);

}  // namespace peal::hvd
