// Memory in which gradients are computed, and from which peers read them. Used by GradientExchange.
#pragma once

#include <cstddef>
#include <vector>

#include "peal/group/process_group.h"
#include "peal/train/ddp/gradient_buckets.h"
#include "peal/train/ddp/place_allocator.h"
#include "peal/train/tensors/typed_lists.h"

namespace peal::hvd {

/// Gives each dense gradient on the CPU a place in memory of the group, so that its reduction needs
/// no copy. parameter.grad() is in that place. Exception: if the program still has a tensor of an
/// earlier step there, autograd allocates this step's gradient. So no tensor that the program keeps
/// is overwritten.
/// Threads: one at a time.
class GradientPlaces final {
 public:
  /// `parameters`: those that require gradients, in the order of their registration. Keeps the
  /// group.
  /// Errors: resource. Cost: allocates the memory of all gradients.
  GradientPlaces(ProcessGroupPtr group, const std::vector<train::NamedTensor>& parameters);

  /// For GradientCalls::computed.
  torch::Tensor computed(std::size_t parameter, const torch::Tensor& gradient);
  /// The gradient is complete: autograd does not need its place any more in this step.
  void accumulated(std::size_t parameter);
  /// Expects the gradients of the next step, on the calling thread.
  void begin_step();

 private:
  train::TrainedParameter* place_of(std::size_t parameter);

  ProcessGroupPtr group_;
  train::GradientBuckets buckets_;
  std::vector<std::size_t> index_of_;  // in the buckets, by parameter
  train::PlaceAllocator allocator_;
};

}  // namespace peal::hvd
