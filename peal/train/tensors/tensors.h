// The operations of a ProcessGroup on tensors, as free functions with the same names.
//
// Tensors may have any strides and be on any device: tensors that are not contiguous on the CPU are
// copied to dense memory there, and back. Ranks send the elements in row-major order; number and
// type must agree, shapes need not. Order, threads, errors and cost are as for the ProcessGroup
// operation of the same name. Further errors: usage (an undefined tensor, a tensor on the device
// meta, a list of the wrong length), unsupported (a tensor that is not dense, a type that
// peal::DType lacks). Autograd does not record these operations. A tensor that an operation has
// written counts as modified in place, so a backward pass that needs the old value fails instead of
// using the new value.
//
// `_async`, `isend` and `irecv` return a Work that keeps the tensors alive. Results in
// non-contiguous tensors are complete after wait(). An early release of the Work waits for the
// operation.
#pragma once

#include <initializer_list>
#include <utility>
#include <vector>

#include <torch/types.h>

#include "peal/base/units.h"
#include "peal/group/buffer.h"
#include "peal/group/options.h"
#include "peal/group/process_group.h"
#include "peal/group/work.h"

namespace peal::train {

using torch::Tensor;
using Tensors = std::vector<Tensor>;

/// The tensor argument of a collective: one tensor, or a list of tensors of one type. Each
/// operation documents the meaning of a list.
class TensorList {
 public:
  /// An empty list.
  TensorList() = default;
  TensorList(Tensor tensor) : tensors_{std::move(tensor)}, form_(BufferForm::kOne) {}
  TensorList(Tensors tensors) : tensors_(std::move(tensors)) {}
  TensorList(std::initializer_list<Tensor> tensors) : tensors_(tensors) {}

  BufferForm form() const { return form_; }
  const Tensors& all() const { return tensors_; }

 private:
  Tensors tensors_;
  BufferForm form_ = BufferForm::kList;
};

/// The memory of a contiguous tensor, for the operations of ProcessGroup. Borrowed.
/// Errors: usage (not contiguous), and as above.
Buffer buffer_of(const Tensor& tensor);

/// A new tensor of zeros in memory of ProcessGroup::allocate, on which peers of the host work
/// without a copy. The memory lives as long as a tensor uses it.
/// Errors: as ProcessGroup::allocate; unsupported (a type that peal::DType lacks).
Tensor allocate_tensor(ProcessGroup& group, torch::IntArrayRef sizes, torch::ScalarType type);

// ---- point to point
void send(ProcessGroup& group, const Tensor& data, Rank to, const MessageOptions& options = {});
/// Returns the sender.
Rank recv(ProcessGroup& group,
          const Tensor& data,
          Rank from = kAnySource,
          const MessageOptions& options = {});
WorkPtr isend(ProcessGroup& group, const Tensor& data, Rank to, const MessageOptions& options = {});
WorkPtr irecv(ProcessGroup& group,
              const Tensor& data,
              Rank from = kAnySource,
              const MessageOptions& options = {});

// ---- in place; a list is sent as one tensor (coalesced)
/// data = the root's data
void broadcast(ProcessGroup& group,
               const TensorList& data,
               Rank root,
               const CallOptions& options = {});
WorkPtr broadcast_async(ProcessGroup& group,
                        const TensorList& data,
                        Rank root,
                        const CallOptions& options = {});

/// data = op over r of data_r
void all_reduce(ProcessGroup& group, const TensorList& data, const ReduceOptions& options = {});
WorkPtr all_reduce_async(ProcessGroup& group,
                         const TensorList& data,
                         const ReduceOptions& options = {});

/// As all_reduce at the root; on other ranks data does not change.
void reduce(ProcessGroup& group,
            const TensorList& data,
            Rank root,
            const ReduceOptions& options = {});
WorkPtr reduce_async(ProcessGroup& group,
                     const TensorList& data,
                     Rank root,
                     const ReduceOptions& options = {});

// ---- a block for each rank: one tensor of size() blocks, or a list of size() tensors, which may
// have different sizes. The forms are those of Collectives (group/collectives.h).
/// out = the root's block rank(); on other ranks `in` has the same form and is ignored.
void scatter(ProcessGroup& group,
             const TensorList& in,
             const Tensor& out,
             Rank root,
             const BlockOptions& options = {});
WorkPtr scatter_async(ProcessGroup& group,
                      const TensorList& in,
                      const Tensor& out,
                      Rank root,
                      const BlockOptions& options = {});

/// The root's out = in_0 in_1 ...; on other ranks `out` has the same form and is ignored.
void gather(ProcessGroup& group,
            const Tensor& in,
            const TensorList& out,
            Rank root,
            const BlockOptions& options = {});
WorkPtr gather_async(ProcessGroup& group,
                     const Tensor& in,
                     const TensorList& out,
                     Rank root,
                     const BlockOptions& options = {});

/// out = in_0 in_1 ...
void all_gather(ProcessGroup& group,
                const TensorList& in,
                const TensorList& out,
                const BlockOptions& options = {});
WorkPtr all_gather_async(ProcessGroup& group,
                         const TensorList& in,
                         const TensorList& out,
                         const BlockOptions& options = {});

/// out = op over r of block rank() of in_r
void reduce_scatter(ProcessGroup& group,
                    const TensorList& in,
                    const TensorList& out,
                    const ReduceScatterOptions& options = {});
WorkPtr reduce_scatter_async(ProcessGroup& group,
                             const TensorList& in,
                             const TensorList& out,
                             const ReduceScatterOptions& options = {});

/// block r of out = block rank() of in_r
void all_to_all(ProcessGroup& group,
                const TensorList& in,
                const TensorList& out,
                const AllToAllOptions& options = {});
WorkPtr all_to_all_async(ProcessGroup& group,
                         const TensorList& in,
                         const TensorList& out,
                         const AllToAllOptions& options = {});

}  // namespace peal::train
