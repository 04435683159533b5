// Chooses a rank's samples of an epoch, shuffled or in order, as a sampler for
// torch::data::make_data_loader.
#pragma once

#include <cstddef>
#include <cstdint>

#include "peal/base/units.h"
#include "peal/train/data/shard.h"
#include "peal/train/samplers/epoch_sampler.h"

namespace peal::train {

struct SamplerOptions {
  enum class Order : unsigned char { kShuffled, kSequential };
  Order order = Order::kShuffled;
  data::Remainder remainder = data::Remainder::kPad;
  std::uint64_t seed = 0;  // the same on every rank
};

/// An EpochSampler (epoch_sampler.h) over all samples of a data set, each once in an epoch.
///   DistributedSampler sampler(dataset.size(), group->rank(), group->size());
///   auto loader = torch::data::make_data_loader(dataset, sampler, batch_size);
///   for (int epoch = 0; epoch < 10; ++epoch) for (auto& batch : *loader) ...
/// Every epoch has another order, and every rank takes the same number. Together the ranks lose no
/// sample (kPad, the default) or repeat no sample (kDrop). With kUneven they do neither; for
/// evaluation use {.order = kSequential, .remainder = kUneven}.
class DistributedSampler final : public EpochSampler {
 public:
  /// Errors: usage (a rank outside of 0 .. ranks - 1).
  DistributedSampler(std::size_t size, Rank rank, int ranks, SamplerOptions options = {});
};

}  // namespace peal::train
