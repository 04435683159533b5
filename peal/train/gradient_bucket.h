// Gradients that travel together, in one block of memory that peers map. Filled and sent by
// GradientReducer.
#pragma once

#include <cstddef>
#include <vector>

#include <torch/types.h>

#include "peal/group/process_group.h"

namespace peal::train {

/// Layout, all of one type: gradient 0 | gradient 1 | ... | a mark for each gradient | a mark for
/// the module. A mark is 0 or 1 on each rank, and is averaged with the gradients. A mark that is
/// not 0 afterwards was set by some rank, so the ranks learn of it without another message.
class GradientBucket {
 public:
  /// A place for the gradient of each of `parameters`, which are of this type. There may be none.
  /// Errors: resource.
  GradientBucket(ProcessGroup& group, DType dtype, const std::vector<torch::Tensor>& parameters);

  std::size_t size() const { return gradients_.size(); }

  /// Copies the parameter's gradient to its place, unless it lives there already; zeros if it has
  /// none.
  /// Errors: unsupported (a gradient that is sparse or has a history).
  void take(std::size_t index, const torch::Tensor& parameter);

  /// From now on the parameter's gradient is the tensor in the bucket.
  void give(std::size_t index, const torch::Tensor& parameter) const;

  /// If the parameter's gradient lives in the bucket, the parameter gets a copy instead.
  void release(std::size_t index, const torch::Tensor& parameter) const;

  enum class Mark : unsigned char { kClear, kSet };
  void mark_all(Mark mark);
  void mark(std::size_t index, Mark mark);
  /// Which are set, of those for the gradients.
  std::vector<bool> marks() const;

  void mark_module(Mark mark);
  bool module_is_marked() const;

  /// All of it, with the marks.
  Buffer memory() const { return memory_; }

 private:
  Buffer memory_;
  std::vector<torch::Tensor> gradients_;  // in memory_, shaped and strided like the parameters
  torch::Tensor marks_, module_mark_;
};

}  // namespace peal::train
