// Draws samples with given weights and shares them out over the ranks, as a sampler for
// torch::data::make_data_loader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "peal/base/units.h"
#include "peal/train/data/shard.h"
#include "peal/train/data/weighted_draw.h"
#include "peal/train/samplers/epoch_sampler.h"

namespace peal::train {

struct WeightedSamplerOptions {
  data::Replacement replacement = data::Replacement::kWith;
  /// Draws of an epoch, on all ranks together. Without a value: as many as there are weights.
  std::optional<std::size_t> samples = std::nullopt;
  data::Remainder remainder = data::Remainder::kPad;
  std::uint64_t seed = 0;  // the same on every rank
};

/// An EpochSampler (epoch_sampler.h) over samples that are drawn by weight: sample i comes with
/// probability weights[i] / sum of weights. A weight of 0 is never drawn. All ranks make the same
/// draws, by (seed, epoch), and share them out. So the frequencies hold for the ranks together,
/// and without replacement a sample comes at most once, on one rank.
///   DistributedWeightedSampler sampler(weights, group->rank(), group->size(), {.samples = 10000});
class DistributedWeightedSampler final : public EpochSampler {
 public:
  /// `weights` has one weight for each sample of the data set, the same on every rank.
  /// Errors: usage (a rank outside of 0 .. ranks - 1; a weight that is negative, infinite or NaN;
  ///   no positive weight; without replacement, more draws than positive weights).
  /// Cost: memory for 32 bytes for each positive weight. Each epoch: WeightedDraw::draw.
  DistributedWeightedSampler(std::span<const double> weights,
                             Rank rank,
                             int ranks,
                             const WeightedSamplerOptions& options = {});
};

}  // namespace peal::train
