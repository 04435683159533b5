// Gives the batch normalizations of a model statistics over all ranks.
#pragma once

#include <cstddef>

#include <torch/nn/module.h>

#include "peal/group/process_group.h"
#include "peal/train/nn/sync_batch_norm.h"

namespace peal::train {

/// Makes batch normalizations in `module` and below synchronize over `group`:
/// - Each SyncBatchNorm gets the group and the weights.
/// - Each BatchNorm1d, 2d and 3d that is an element of a Sequential is replaced by a SyncBatchNorm
///   with the same options, the same tensors and the same mode. An optimizer made before keeps its
///   parameters.
/// Returns the number of SyncBatchNorms.
///
/// Other batch normalizations cannot be replaced in C++. A module such as
///   struct Net : torch::nn::Module { torch::nn::BatchNorm2d norm{64}; ... };
/// calls its member, whose type is fixed. replace_module would change only the list of children,
/// which the call does not use, and BatchNorm's forward is not virtual. So this function throws and
/// changes nothing. Declare such members as
///   peal::train::SyncBatchNorm norm{64};
/// They have the same options and keys, and without a group they compute the same.
/// If a program adds a member to a Sequential, and also calls it itself, it must change the type of
/// the member too: this function does not see it.
/// Order: local; the same on every rank.
/// Errors: unsupported (batch normalizations outside of a Sequential; lists their names).
std::size_t convert_sync_batch_norm(torch::nn::Module& module,
                                    const ProcessGroupPtr& group,
                                    LossWeights weights = LossWeights::kEqual);

}  // namespace peal::train
