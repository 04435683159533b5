// Gradients that are sent together, in one block of memory that peers map.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <torch/types.h>

#include "peal/group/process_group.h"
#include "peal/train/ddp/communication_hook.h"
#include "peal/train/ddp/place_allocator.h"

namespace peal::train {

/// Layout: gradient 0 | gradient 1 | ..., all of one type. Each begins at a multiple of 64 bytes,
/// as LibTorch's own tensors do; zeros fill the gaps.
class GradientBucket {
 public:
  struct Parameter {
    std::string name;
    torch::Tensor tensor;
  };

  /// Has a place for the gradient of each parameter, all of type `dtype`.
  /// Errors: resource.
  GradientBucket(ProcessGroup& group,
                 std::size_t index,
                 DType dtype,
                 std::vector<Parameter> parameters);

  std::size_t size() const { return contents_.gradients.size(); }
  /// The place of a gradient: a tensor with the shape of the parameter, and its strides if they
  /// leave no gaps.
  const torch::Tensor& place(std::size_t gradient) const {
    return contents_.gradients[gradient].values;
  }
  /// Null if the gradient is small: to copy it costs nothing.
  const PlaceMemoryPtr& place_memory(std::size_t gradient) const { return memories_[gradient]; }
  Buffer memory() const { return memory_; }
  /// All places and gaps, one after the other.
  const torch::Tensor& flat() const { return contents_.flat; }

  const GradientsToAverage& contents() const { return contents_; }
  void set_last() { contents_.is_last = true; }

 private:
  Buffer memory_;
  GradientsToAverage contents_;
  std::vector<PlaceMemoryPtr> memories_;
};

}  // namespace peal::train
