// The interface by which a program replaces the all_reduce of gradients, for example to compress
// them. compression_hooks.h and power_sgd.h have implementations.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <torch/types.h>

#include "peal/base/clock.h"
#include "peal/group/process_group.h"
#include "peal/group/work.h"

namespace peal::train {

/// A bucket as a hook gets it. The tensors share the bucket's memory.
struct GradientsToAverage {
  struct Gradient {
    std::string name;         // of the parameter
    torch::Tensor parameter;  // do not write to it
    torch::Tensor values;     // a part of `flat`, with the shape of the parameter
  };

  std::size_t index = 0;  // buckets are sent in the order of their indices
  bool is_last = false;
  // All gradients, one after the other, with gaps of zeros: 1 dimension.
  torch::Tensor flat;
  std::vector<Gradient> gradients;
};

class CommunicationHook {
 public:
  virtual ~CommunicationHook() = default;

  /// Starts to replace the gradients by their mean over the ranks: when the returned Work has ended
  /// without an error and wait() has returned, `bucket.flat` holds the mean, with the same bits on
  /// every rank. The memory of the bucket belongs to the operation until then.
  /// Order: collective. Every rank calls it for the same buckets in the same order.
  /// Threads: the thread that runs backward; it also calls wait() of the Works, in their order.
  virtual WorkPtr start(ProcessGroup& group, const GradientsToAverage& bucket, Timeout timeout) = 0;
};

}  // namespace peal::train
