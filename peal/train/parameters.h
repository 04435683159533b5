// A module's parameters, all at once: equal on every rank at the start, their gradients averaged
// after backward. What DistributedDataParallel does by itself, for who writes the training loop by
// hand.
#pragma once

#include <torch/nn/module.h>

#include "peal/base/clock.h"
#include "peal/group/process_group.h"

namespace peal::train {

/// Every rank's parameters and buffers become those of `root`.
/// Order: collective. Errors: those of ProcessGroup::broadcast; mismatch names no parameter (see
/// DistributedDataParallel, which does).
/// Cost: one coalesced broadcast for each type.
void broadcast_parameters(ProcessGroup& group,
                          const torch::nn::Module& module,
                          Rank root = 0,
                          Timeout timeout = kGroupTimeout);

/// grad = (grad_0 + grad_1 + ...) / n for every parameter that has a gradient: with equal batches
/// the gradient of the mean loss over all ranks' samples. Call it between backward() and step().
/// Order: collective; the same parameters must have gradients on every rank.
/// Cost: one coalesced all_reduce for each type, after backward; DistributedDataParallel averages
/// while backward still runs.
void average_gradients(ProcessGroup& group,
                       const torch::nn::Module& module,
                       Timeout timeout = kGroupTimeout);

}  // namespace peal::train
