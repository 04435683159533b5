// Gradients that travel together, in one block of memory that peers map. Filled and sent by
// GradientReducer.
#pragma once

#include <cstddef>
#include <vector>

#include <torch/types.h>

#include "peal/group/process_group.h"

namespace peal::train {

/// Layout, all of one type: gradient 0 | gradient 1 | ... | a mark for each gradient.
/// A mark is 0 or 1 on each rank, and is averaged with the gradients: not 0 afterwards says that
/// some rank had set it, without a message of its own.
class GradientBucket {
 public:
  /// Errors: resource.
  GradientBucket(ProcessGroup& group, std::vector<torch::Tensor> parameters);

  std::size_t size() const { return parameters_.size(); }

  /// Copies the parameter's gradient into the bucket, unless it lives here already; zeros if it has
  /// none.
  /// Errors: unsupported (a gradient that is sparse or has a history).
  void take(std::size_t index);

  /// The parameter's gradient is from now on what lies in the bucket.
  void give(std::size_t index);

  enum class Mark : unsigned char { kClear, kSet };
  void mark_all(Mark mark);
  void mark(std::size_t index, Mark mark);
  /// Which are set.
  std::vector<bool> marks() const;

  /// All of it, with the marks.
  Buffer memory() const { return memory_; }

 private:
  std::vector<torch::Tensor> parameters_;
  Buffer memory_;
  std::vector<torch::Tensor> gradients_;  // in memory_, shaped and strided like the parameters
  torch::Tensor marks_;
};

}  // namespace peal::train
