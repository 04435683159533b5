// Gradients that are sent together, in one block of memory that peers map. GradientReducer fills
// and sends buckets.
#pragma once

#include <cstddef>
#include <vector>

#include <torch/types.h>

#include "peal/group/process_group.h"

namespace peal::train {

/// Layout, all of one type: gradient 0 | gradient 1 | ... | a mark for each gradient | a mark for
/// the module. A mark is 0 or 1 on each rank, and is averaged with the gradients. If the average is
/// not 0, some rank has set the mark. So all ranks learn of it without another message.
class GradientBucket {
 public:
  /// Has a place for the gradient of each parameter. All are of type `dtype`; the list may be
  /// empty.
  /// Errors: resource.
  GradientBucket(ProcessGroup& group, DType dtype, const std::vector<torch::Tensor>& parameters);

  std::size_t size() const { return gradients_.size(); }

  /// Copies the parameter's gradient to its place, unless it is already there. Writes zeros for a
  /// parameter without a gradient.
  /// Errors: unsupported (a gradient that is sparse or has a history).
  void take(std::size_t index, const torch::Tensor& parameter);

  /// From now on the parameter's gradient is the tensor in the bucket.
  void give(std::size_t index, const torch::Tensor& parameter) const;

  /// If the parameter's gradient is in the bucket, the parameter gets a copy instead.
  void release(std::size_t index, const torch::Tensor& parameter) const;

  enum class Mark : unsigned char { kClear, kSet };
  void mark_all(Mark mark);
  void mark(std::size_t index, Mark mark);
  /// For each gradient, whether its mark is set.
  std::vector<bool> marks() const;

  void mark_module(Mark mark);
  bool module_is_marked() const;

  /// The whole block, with the marks.
  Buffer memory() const { return memory_; }

 private:
  Buffer memory_;
  std::vector<torch::Tensor> gradients_;  // in memory_, shaped and strided like the parameters
  torch::Tensor marks_, module_mark_;
};

}  // namespace peal::train
