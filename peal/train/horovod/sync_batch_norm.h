// Batch normalization by the statistics of all ranks. For training programs, by peal/horovod.h.
#pragma once

#include <torch/nn/options/batchnorm.h>

#include "peal/train/horovod/process_set.h"
#include "peal/train/nn/sync_batch_norm.h"

namespace peal::hvd {

/// A train::SyncBatchNorm over the ranks of a process set; a plain batch normalization in a set of
/// one rank. Ranks may have batches of different sizes.
/// Follows each init, as in a new round of an elastic job.
/// Order: forward and backward: as train::SyncBatchNorm.
/// Errors: those of train::SyncBatchNorm. In training, also usage (before init; this rank is not in
///   the set) and those of ProcessGroup::new_group.
/// Cost: the first forward pass in training makes a group of the ranks of the set.
train::SyncBatchNorm SyncBatchNorm(const torch::nn::BatchNormOptions& options,
                                   const ProcessSet& process_set = global_process_set);

}  // namespace peal::hvd
