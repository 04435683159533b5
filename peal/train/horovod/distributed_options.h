// The options of DistributedOptimizer. For training programs, by peal/horovod.h.
#pragma once

#include <cstdint>
#include <vector>

#include "peal/train/horovod/handle.h"
#include "peal/train/horovod/operation_options.h"

namespace peal::hvd {

struct DistributedOptions {
  CompressorPtr compression = nullptr;
  /// Gradients are reduced in every n-th backward pass.
  int backward_passes_per_step = 1;
  /// What a step uses of these passes. Horovod: the sum.
  enum class Accumulation : std::uint8_t { kSum, kMean } accumulation = Accumulation::kSum;
  /// Adasum: the optimizer makes its step on this rank, and the changes of the parameters are
  /// reduced.
  Reduction op = Average;
  /// f: gradients are divided by f before the sum, and by size / f after it. For Average only.
  double gradient_predivide_factor = 1.0;
  /// Parameters whose gradients are reduced together, each at most once.
  std::vector<Tensors> groups = {};
  /// More than 0: all parameters in this number of groups; not together with `groups`.
  int num_groups = 0;
  /// How sparse gradients travel. kSparse: as entries, by all-gathers. A rank recognizes a sparse
  /// parameter by its first gradient, so each rank needs such a gradient in the first step.
  /// Otherwise the rank sends dense zeros by an all-reduce, and the ranks wait for each other. Use
  /// kAsDense if ranks may miss gradients of sparse parameters.
  enum class SparseGradients : std::uint8_t {
    kSparse,
    kAsDense
  } sparse_gradients = SparseGradients::kSparse;
  ProcessSet process_set = {};
};

}  // namespace peal::hvd
