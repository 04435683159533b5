#include "peal/train/samplers/distributed_sampler.h"

#include <numeric>
#include <vector>

#include "peal/train/data/permutation.h"

namespace peal::train {
namespace {

std::vector<std::size_t> sequential(std::size_t size, std::uint64_t /*seed*/, std::uint64_t) {
  std::vector<std::size_t> order(size);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

}  // namespace

DistributedSampler::DistributedSampler(std::size_t size,
                                       Rank rank,
                                       int ranks,
                                       SamplerOptions options)
    : EpochSampler({.size = size,
                    .rank = rank,
                    .ranks = ranks,
                    .remainder = options.remainder,
                    .seed = options.seed,
                    .order = options.order == SamplerOptions::Order::kShuffled ? data::permutation
                                                                               : sequential}) {}

}  // namespace peal::train
