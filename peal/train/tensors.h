// The operations of a ProcessGroup on tensors, as free functions with the same names.
//
// Tensors may have any strides: those that are not contiguous are copied to dense memory and back.
// What is sent is their elements in row-major order; only number and type must agree, not shapes.
// Order, threads, errors and cost are those of the ProcessGroup's operation of the same name;
// besides: usage (an undefined tensor, a list of the wrong length), unsupported (a tensor that is
// not on the CPU or not dense, a type without a counterpart in peal::DType). Autograd does not see
// these operations; a tensor that one of them has written counts as modified in place, so that a
// backward pass that needs its old value says so instead of using the new one.
//
// `_async`, `isend` and `irecv` return a Work that keeps the tensors alive. Results of
// non-contiguous tensors are there when wait() has returned. Dropping the Work early waits for the
// operation.
#pragma once

#include <initializer_list>
#include <utility>
#include <vector>

#include <torch/types.h>

#include "peal/base/clock.h"
#include "peal/base/reduce_op.h"
#include "peal/base/units.h"
#include "peal/group/buffer.h"
#include "peal/group/process_group.h"
#include "peal/group/work.h"

namespace peal::train {

using torch::Tensor;
using Tensors = std::vector<Tensor>;

/// What an operation in place works on: a tensor, or several of one type, which travel as one
/// (coalesced).
class TensorList {
 public:
  TensorList(Tensor tensor) : tensors_{std::move(tensor)} {}
  TensorList(Tensors tensors) : tensors_(std::move(tensors)) {}
  TensorList(std::initializer_list<Tensor> tensors) : tensors_(tensors) {}

  operator const Tensors&() const { return tensors_; }

 private:
  Tensors tensors_;
};

/// The memory of a contiguous tensor, for ProcessGroup's own operations. Borrowed.
/// Errors: usage (not contiguous), and as above.
Buffer buffer_of(const Tensor& tensor);

// ---- point to point
void send(ProcessGroup& group, Tensor data, Rank to, Tag = {}, Timeout = kGroupTimeout);
/// Returns who sent it.
Rank recv(
    ProcessGroup& group, Tensor data, Rank from = kAnySource, Tag = {}, Timeout = kGroupTimeout);
WorkPtr isend(ProcessGroup& group, Tensor data, Rank to, Tag = {}, Timeout = kGroupTimeout);
WorkPtr irecv(
    ProcessGroup& group, Tensor data, Rank from = kAnySource, Tag = {}, Timeout = kGroupTimeout);

// ---- in place
/// data = the root's data
void broadcast(ProcessGroup& group, TensorList data, Rank root, Timeout = kGroupTimeout);
WorkPtr broadcast_async(ProcessGroup& group, TensorList data, Rank root, Timeout = kGroupTimeout);

/// data = op over r of data_r
void all_reduce(ProcessGroup& group,
                TensorList data,
                ReduceOp op = ReduceOp::kSum,
                Timeout timeout = kGroupTimeout);
WorkPtr all_reduce_async(ProcessGroup& group,
                         TensorList data,
                         ReduceOp op = ReduceOp::kSum,
                         Timeout timeout = kGroupTimeout);

/// As all_reduce at the root; elsewhere data is left as it was.
void reduce(ProcessGroup& group,
            TensorList data,
            Rank root,
            ReduceOp op = ReduceOp::kSum,
            Timeout timeout = kGroupTimeout);
WorkPtr reduce_async(ProcessGroup& group,
                     TensorList data,
                     Rank root,
                     ReduceOp op = ReduceOp::kSum,
                     Timeout timeout = kGroupTimeout);

// ---- a block for each rank: one tensor of size() equal blocks, or a list of size() tensors, which
// may have different sizes
/// out = in_0 in_1 ...
void all_gather(ProcessGroup& group, Tensor in, Tensor out, Timeout = kGroupTimeout);
void all_gather(ProcessGroup& group, Tensor in, const Tensors& out, Timeout = kGroupTimeout);
WorkPtr all_gather_async(ProcessGroup& group, Tensor in, Tensor out, Timeout = kGroupTimeout);
WorkPtr all_gather_async(ProcessGroup&, Tensor in, const Tensors& out, Timeout = kGroupTimeout);

/// The root's out[r] = in_r; elsewhere `out` is empty.
void gather(ProcessGroup&, Tensor in, const Tensors& out, Rank root, Timeout = kGroupTimeout);
WorkPtr gather_async(
    ProcessGroup& group, Tensor in, const Tensors& out, Rank root, Timeout timeout = kGroupTimeout);

/// out = the root's in[rank()]; elsewhere `in` is empty.
void scatter(ProcessGroup&, const Tensors& in, Tensor out, Rank root, Timeout = kGroupTimeout);
WorkPtr scatter_async(
    ProcessGroup& group, const Tensors& in, Tensor out, Rank root, Timeout timeout = kGroupTimeout);

/// out = op over r of block rank() of in_r
void reduce_scatter(ProcessGroup& group,
                    Tensor in,
                    Tensor out,
                    ReduceOp op = ReduceOp::kSum,
                    Timeout timeout = kGroupTimeout);
void reduce_scatter(ProcessGroup& group,
                    const Tensors& in,
                    Tensor out,
                    ReduceOp op = ReduceOp::kSum,
                    Timeout timeout = kGroupTimeout);
WorkPtr reduce_scatter_async(ProcessGroup& group,
                             Tensor in,
                             Tensor out,
                             ReduceOp op = ReduceOp::kSum,
                             Timeout timeout = kGroupTimeout);
WorkPtr reduce_scatter_async(ProcessGroup& group,
                             const Tensors& in,
                             Tensor out,
                             ReduceOp op = ReduceOp::kSum,
                             Timeout timeout = kGroupTimeout);

/// block r of out = block rank() of in_r
void all_to_all(ProcessGroup& group, Tensor in, Tensor out, Timeout = kGroupTimeout);
void all_to_all(ProcessGroup&, const Tensors& in, const Tensors& out, Timeout = kGroupTimeout);
WorkPtr all_to_all_async(ProcessGroup& group, Tensor in, Tensor out, Timeout = kGroupTimeout);
WorkPtr all_to_all_async(ProcessGroup& group,
                         const Tensors& in,
                         const Tensors& out,
                         Timeout timeout = kGroupTimeout);

}  // namespace peal::train
