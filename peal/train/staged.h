// A tensor of any strides as an operation sees it: dense memory, the tensor's own where possible.
// Used by the collectives on tensors and by parameters.cpp.
#pragma once

#include <span>
#include <vector>

#include <torch/types.h>

#include "peal/group/buffer.h"
#include "peal/group/work.h"

namespace peal::train {

class Staged {
 public:
  enum class Use : unsigned char { kRead, kWrite, kReadWrite };

  /// Copies the tensor into dense memory if its own is not (and is read).
  /// Errors: usage (undefined), unsupported (not on the CPU, not dense-strided, its type).
  Staged(torch::Tensor tensor, Use use);

  /// The memory to operate on; lives as long as this object or a copy of it.
  Buffer buffer() const;

  /// To be called when the operation has ended: what was written appears in the tensor, and
  /// autograd learns that it has changed.
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

/// `work` together with the tensors that it uses: keeps them alive, and finishes them when it is
/// waited for. When the last reference to it is dropped early, it waits for the operation to end.
WorkPtr work_on(StagedList list, WorkPtr work);

}  // namespace peal::train
