#include "peal/train/samplers/distributed_weighted_sampler.h"

#include <memory>
#include <vector>

namespace peal::train {
namespace {

/// The order that makes `size` draws. Fails at once if an epoch of `samples` draws is impossible.
data::EpochOrder weighted_order(std::span<const double> weights,
                                data::Replacement replacement,
                                std::size_t samples) {
  const auto draw = std::make_shared<const data::WeightedDraw>(weights, replacement);
  draw->require_possible(samples);
  return [draw](std::size_t size, std::uint64_t seed, std::uint64_t epoch) {
    return draw->draw(size, seed, epoch);
  };
}

}  // namespace

DistributedWeightedSampler::DistributedWeightedSampler(std::span<const double> weights,
                                                       Rank rank,
                                                       int ranks,
                                                       const WeightedSamplerOptions& options)
    : EpochSampler({.size = options.samples.value_or(weights.size()),
                    .rank = rank,
                    .ranks = ranks,
                    .remainder = options.remainder,
                    .seed = options.seed,
                    .order = weighted_order(
                        weights, options.replacement, options.samples.value_or(weights.size()))}) {}

}  // namespace peal::train
