// Clips gradients by the norm of all of them together, also if ranks have different parts of the
// gradients. Call it between backward and the optimizer's step.
#pragma once

#include <vector>

#include <torch/types.h>

#include "peal/base/clock.h"
#include "peal/group/process_group.h"

namespace peal::train {

struct ClipOptions {
  double norm_type = 2;  // any positive number; infinity: the largest absolute value

  /// How to treat a norm that is infinite or NaN.
  enum class NonFinite : unsigned char {
    kPass,     // as torch: gradients are multiplied by 0 or NaN. Check the returned norm.
    kIsError,  // throws on every rank, and no gradient changes
  };
  NonFinite non_finite = NonFinite::kPass;

  Timeout timeout = kGroupTimeout;  // of the operation, for sharded parameters
};

/// Let norm = (sum of |g|^p)^(1/p) over all elements g of the gradients. If norm is larger than
/// max_norm:
///   gradient = gradient * max_norm / (norm + 1e-6)
/// Returns norm. So `max_norm` infinity only measures. A parameter that is in the list several
/// times (tied weights) counts once. Parameters without a gradient are skipped.
///
/// For gradients that are equal on all ranks, as after DistributedDataParallel: then every rank
/// gets the same norm and the same gradients to the bit, without communication, also with different
/// numbers of threads. With p other than 1, 2 and infinity, this needs the same math library.
/// Errors: usage (a negative or NaN max_norm; a norm type that is not positive; a norm that is not
///   finite, if that is an error), unsupported (gradients that are not floating).
/// Cost: a pass over the gradients, in f64, and another if they are clipped.
double clip_grad_norm_(const std::vector<torch::Tensor>& parameters,
                       double max_norm,
                       const ClipOptions& options = {});

/// The gradients of a model of which each rank has a part.
struct ShardedParameters {
  /// Parameters with another part of the model's gradients on each rank (FSDP, ZeRO, tensor or
  /// pipeline parallelism).
  std::vector<torch::Tensor> shards;
  /// Parameters with equal gradients on all ranks, which count once.
  std::vector<torch::Tensor> replicas = {};
};

/// As above, with the norm over the shards of all ranks and the replicas. Each element of the model
/// must be a shard on one rank only, or a replica.
/// Order: collective, also for a rank without gradients.
/// Errors: as above, and those of all_reduce.
/// Cost: as above, and an all_reduce of one f64.
double clip_grad_norm_(ProcessGroup& group,
                       const ShardedParameters& parameters,
                       double max_norm,
                       const ClipOptions& options = {});

}  // namespace peal::train
