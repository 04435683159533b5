// Gives an operation dense memory on the CPU for a tensor of any strides and device: the tensor's
// memory if possible, else a copy. Used by the collectives on tensors and by parameters.cpp.
#pragma once

#include <vector>

#include <torch/types.h>

#include "peal/group/buffer.h"
#include "peal/group/work.h"

namespace peal::train {

/// Errors: usage (an undefined tensor, or one without values, on the device meta), unsupported (not
///   dense-strided; a type that peal::DType lacks).
void require_sendable(const torch::Tensor& tensor);

class Staged {
 public:
  enum class Use : unsigned char { kRead, kWrite, kReadWrite };

  /// Allocates dense memory if the tensor's memory is not dense or not on the CPU, and copies the
  /// tensor if it is read. A copy from a device waits for the device.
  /// Errors: those of require_sendable.
  Staged(torch::Tensor tensor, Use use);

  /// The memory to operate on; lives as long as this object or a copy of it.
  Buffer buffer() const;

  /// Call after the end of the operation: copies the result to the tensor, and notifies autograd of
  /// the change.
  void finish() const;

 private:
  torch::Tensor tensor_;
  torch::Tensor dense_;
  Use use_;
};

using StagedList = std::vector<Staged>;

StagedList staged(const std::vector<torch::Tensor>& tensors, Staged::Use use);
std::vector<Buffer> buffers(const StagedList& list);
std::vector<ConstBuffer> const_buffers(const StagedList& list);
void finish(const StagedList& list);

/// A Work that keeps the tensors of `work` alive. Its wait() finishes the tensors. The release of
/// its last reference waits for the end of the operation.
WorkPtr work_on(StagedList list, WorkPtr work);

}  // namespace peal::train
