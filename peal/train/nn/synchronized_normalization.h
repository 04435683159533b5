// The computation of SyncBatchNorm: statistics over the ranks, and normalization by them with a
// backward pass over the ranks.
#pragma once

#include <torch/types.h>

#include "peal/group/process_group.h"

namespace peal::train {

/// Of each channel, over all ranks; f64.
struct GlobalStatistics {
  double count = 0;  // values of a channel
  torch::Tensor mean, variance;
};

/// The statistics of the inputs (N, C, ...) of all ranks.
/// Order: collective.
/// Errors: usage, on every rank (fewer than two values for each channel); those of all_gather.
/// Cost: a pass over the input, by the kernel of torch's batch normalization; an all_gather of
///   2*C+1 f64 for each rank.
GlobalStatistics global_statistics(ProcessGroup& group, const torch::Tensor& input);

struct Affine {
  torch::Tensor weight, bias;  // undefined: 1 and 0
  double eps = 0;
};

///   output = (input - mean) / sqrt(variance + eps) * weight + bias
/// The backward pass takes into account that `statistics` depend on the inputs of all ranks. The
/// gradients of weight and bias are those of this rank.
///
/// The loss of the step is proportional to the sum over the ranks r of loss_weight_r * loss_r. The
/// gradients are those of this loss, divided by the loss_weight of this rank.
/// Order: forward is local, backward is collective if the input requires a gradient.
/// Errors: those of all_reduce; unsupported in backward (create_graph).
/// Cost: backward: an all_reduce of 2*C f64, in groups of several ranks.
torch::Tensor synchronized_normalization(const ProcessGroupPtr& group,
                                         const torch::Tensor& input,
                                         const GlobalStatistics& statistics,
                                         const Affine& affine,
                                         double loss_weight = 1);

}  // namespace peal::train
