// All parameters of a module: broadcast at the start, gradients averaged after backward. For
// training loops without DistributedDataParallel, which does both.
#pragma once

#include <torch/nn/module.h>

#include "peal/base/clock.h"
#include "peal/group/process_group.h"
#include "peal/train/ddp/model_tensors.h"

namespace peal::train {

/// Copies the parameters and buffers of `root` to every rank.
/// Order: collective.
/// Errors: those of ProcessGroup::broadcast; mismatch does not name the parameter, unlike that of
///   DistributedDataParallel.
/// Cost: one coalesced broadcast for each type.
void broadcast_parameters(ProcessGroup& group,
                          const torch::nn::Module& module,
                          Rank root = 0,
                          Timeout timeout = kGroupTimeout);
void broadcast_parameters(ProcessGroup& group,
                          const ModelTensors& model,
                          Rank root = 0,
                          Timeout timeout = kGroupTimeout);

///   grad = (grad_0 + grad_1 + ...) / n
/// for every parameter that has a gradient on some rank. With equal batches this is the gradient of
/// the mean loss over the samples of all ranks. Call it between backward() and step(). A missing
/// gradient counts as zero, and its rank gets the mean too. A parameter without a gradient on any
/// rank does not change.
/// Order: collective.
/// Errors: mismatch on every rank (parameters, shapes or types of gradients differ; names the first
///   parameter that differs), and those of all_reduce. After mismatch no gradient has been
///   averaged.
/// Cost: an all_reduce of 32 bytes, and one coalesced all_reduce for each type. If ranks have
///   gradients for different parameters, also one all_reduce, of 16 bytes for each parameter. All
///   of it runs after backward; DistributedDataParallel averages while backward still runs.
void average_gradients(ProcessGroup& group,
                       const torch::nn::Module& module,
                       Timeout timeout = kGroupTimeout);

}  // namespace peal::train
