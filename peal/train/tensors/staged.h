// Gives an operation dense memory for a tensor of any strides: the tensor's memory if possible,
// else a copy. Used by the collectives on tensors and by parameters.cpp.
#pragma once

#include <vector>

#include <torch/types.h>

#include "peal/group/buffer.h"
#include "peal/group/work.h"

namespace peal::train {

class Staged {
 public:
  enum class Use : unsigned char { kRead, kWrite, kReadWrite };

  /// Allocates dense memory if the tensor's memory is not dense, and copies the tensor if it is
  /// read.
  /// Errors: usage (undefined), unsupported (not on the CPU, not dense-strided, its type).
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
