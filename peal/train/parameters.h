// A module's parameters, all at once: equal on every rank at the start, their gradients averaged
// after backward. For training loops without DistributedDataParallel, which does both by itself.
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

/// grad = (grad_0 + grad_1 + ...) / n for every parameter that has a gradient on some rank: with
/// equal batches the gradient of the mean loss over all ranks' samples. Call it between backward()
/// and step(). On a rank without a gradient for the parameter, it counts as zero there, and the
/// rank gets the mean. A parameter without a gradient on any rank is left alone. Order: collective.
/// Errors: mismatch on every rank (the modules have other parameters or shapes, or a gradient has
/// another type; names the first parameter that differs), and those of all_reduce. Nothing has been
/// averaged then.
/// Cost: an all_reduce of 32 bytes, and one coalesced all_reduce for each type; where the ranks
/// have gradients for different parameters, another one of 16 bytes for each parameter. All after
/// backward; DistributedDataParallel averages while backward still runs.
void average_gradients(ProcessGroup& group,
                       const torch::nn::Module& module,
                       Timeout timeout = kGroupTimeout);

}  // namespace peal::train
