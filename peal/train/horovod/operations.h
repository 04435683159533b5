// Horovod's operations on tensors. For training programs, by peal/horovod.h.
//
// Ranks call operations in any order; the names say what belongs together. Tensors may have any
// type of peal::DType, any strides and any device. Results have the device and the memory format of
// the tensor. A form with `_` works in place and returns the tensor. A form with `async` returns a
// Handle; the caller must not change or read the tensor until synchronize has returned.
//
// The blocking forms that are not in place are differentiable, if the tensor requires a gradient:
// backward of each is an operation too, so all ranks run it.
//
// Threads: any number at once.
// Errors of the call: usage (before init; this rank is not in the process set; the name is in
//   flight; a wrong argument), unsupported (a type or layout that peal does not send; a reduction
//   without a meaning for the type). Nothing has started then.
// Errors of synchronize and of the blocking forms: HorovodInternalError. Its kind is mismatch, on
//   all ranks, if ranks have called different operations with one name, or a rank has joined; the
//   ranks can go on. All other kinds have ended the group: peer_lost, timeout, aborted, ...
#pragma once

#include <span>

#include <torch/types.h>

#include "peal/base/units.h"
#include "peal/train/horovod/handle.h"
#include "peal/train/horovod/operation_options.h"

namespace peal::hvd {

// ---- allreduce: result = postscale * (op over r of prescale * tensor_r)
//   Average divides the sum by the size of the set, also while ranks have joined. Integers are
//   computed in f64 and truncated toward zero. Adasum: Maleki et al. 2021.
//   Shape: the same on all ranks.
//   Gradient: the same operation on the gradient.
Tensor allreduce(const Tensor& tensor, const ReductionOptions& options = {});
Tensor allreduce_(const Tensor& tensor, const ReductionOptions& options = {});
Handle<Tensor> allreduce_async(const Tensor& tensor, const ReductionOptions& options = {});
Handle<Tensor> allreduce_async_(const Tensor& tensor, const ReductionOptions& options = {});
/// Starts when all members are ready on all ranks. Results are in the order of the tensors.
Tensors grouped_allreduce(const Tensors& tensors, const ReductionOptions& options = {});
Tensors grouped_allreduce_(const Tensors& tensors, const ReductionOptions& options = {});
Handle<Tensors> grouped_allreduce_async(const Tensors& tensors,
                                        const ReductionOptions& options = {});
Handle<Tensors> grouped_allreduce_async_(const Tensors& tensors,
                                         const ReductionOptions& options = {});
/// The sum or average of sparse tensors, coalesced. Ranks may have different numbers of entries.
Tensor sparse_allreduce(const Tensor& tensor, const ReductionOptions& options = {});
Handle<Tensor> sparse_allreduce_async(const Tensor& tensor, const ReductionOptions& options = {});

// ---- allgather: result = the rows of tensor_0, of tensor_1, ...
//   Shape: the first dimensions may differ between ranks, and may be 0; not a scalar.
//   Gradient: the average over ranks of the gradients of this rank's rows.
Tensor allgather(const Tensor& tensor, const OperationOptions& options = {});
Handle<Tensor> allgather_async(const Tensor& tensor, const OperationOptions& options = {});
Tensors grouped_allgather(const Tensors& tensors, const OperationOptions& options = {});
Handle<Tensors> grouped_allgather_async(const Tensors& tensors,
                                        const OperationOptions& options = {});

// ---- broadcast: result = tensor of the root
//   root_rank: a rank in the world, also with a process set.
//   Shape: the same on all ranks.
//   Gradient: the average over ranks at the root, zero elsewhere.
Tensor broadcast(const Tensor& tensor, Rank root_rank, const OperationOptions& options = {});
Tensor broadcast_(const Tensor& tensor, Rank root_rank, const OperationOptions& options = {});
Handle<Tensor> broadcast_async(const Tensor& tensor,
                               Rank root_rank,
                               const OperationOptions& options = {});
Handle<Tensor> broadcast_async_(const Tensor& tensor,
                                Rank root_rank,
                                const OperationOptions& options = {});

// ---- alltoall: result = the rows for this rank of tensor_0, of tensor_1, ...
//   splits: how many rows each rank gets, in the order of the ranks of the set; from the first row
//   on. Empty: equal blocks.
//   Shape: as allgather.
//   Gradient: the rows go back.
AllToAllResult alltoall(const Tensor& tensor,
                        std::span<const std::int64_t> splits = {},
                        const OperationOptions& options = {});
Handle<AllToAllResult> alltoall_async(const Tensor& tensor,
                                      std::span<const std::int64_t> splits = {},
                                      const OperationOptions& options = {});

// ---- reducescatter: result = this rank's rows of the allreduce
//   Of q*n + m rows on n ranks, the first m ranks get q + 1 rows, the others q.
//   Shape: the same on all ranks; not a scalar.
//   Gradient: the gradients of all ranks' rows, times the scales, times n if op is Sum.
Tensor reducescatter(const Tensor& tensor, const ReductionOptions& options = {});
Handle<Tensor> reducescatter_async(const Tensor& tensor, const ReductionOptions& options = {});
Tensors grouped_reducescatter(const Tensors& tensors, const ReductionOptions& options = {});
Handle<Tensors> grouped_reducescatter_async(const Tensors& tensors,
                                            const ReductionOptions& options = {});

/// Returns when all ranks of the set have called it. Does not wait for earlier operations.
void barrier(const ProcessSet& process_set = global_process_set);

/// For a rank that has no more data: takes part in the operations of the other ranks with neutral
/// values, until all ranks have joined. Returns the rank that joined last, the same on all ranks.
/// Meanwhile all operations but allreduce are a mismatch (see InitOptions::while_joined).
Rank join();

}  // namespace peal::hvd
