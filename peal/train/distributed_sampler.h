// Which samples a rank takes in an epoch, as a sampler for torch::data::make_data_loader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <torch/data/samplers/base.h>

#include "peal/base/units.h"
#include "peal/train/data/shard.h"

namespace peal::train {

struct SamplerOptions {
  enum class Order : unsigned char { kShuffled, kSequential };
  Order order = Order::kShuffled;
  data::Remainder remainder = data::Remainder::kPad;
  std::uint64_t seed = 0;  // the same on every rank
};

/// Shares the samples of an epoch out: the common order, by (seed, epoch), is cut into rounds of
/// `ranks` samples, of which this rank takes the rank-th. Every rank takes equally many; together
/// they lose no sample (kPad, the default) or repeat none (kDrop).
///
/// A data loader takes its sampler by value. Copies share one state, so that the one that was kept
/// steers the loader's:
///   DistributedSampler sampler(dataset.size(), group->rank(), group->size());
///   auto loader = torch::data::make_data_loader(dataset, sampler, batch_size);
///   for (...) { sampler.set_epoch(epoch); for (auto& batch : *loader) ... }
/// Threads: one at a time.
class DistributedSampler final : public torch::data::samplers::Sampler<> {
 public:
  /// Errors: usage (a rank outside of 0 .. ranks - 1).
  DistributedSampler(std::size_t size, Rank rank, int ranks, SamplerOptions options = {});

  /// Begins this epoch: the same on every rank, another order in each.
  void set_epoch(std::uint64_t epoch);
  std::uint64_t epoch() const;

  /// How many samples of the epoch all ranks together have taken, where each has taken as many as
  /// this one. With it, and by however many ranks, an epoch can be continued. A data loader that
  /// prefetches (workers > 0) has taken more than it has shown.
  std::size_t position() const;
  /// Goes on from there: also through the next reset(), with which a data loader begins.
  /// Errors: usage (beyond the end).
  void seek(std::size_t position);

  /// How many samples this rank takes from here to the end of the epoch.
  std::size_t remaining() const;

  /// Begins the epoch again, or one of `size` samples.
  void reset(std::optional<std::size_t> size = std::nullopt) override;
  /// The next `batch_size` indices, fewer at the end of the epoch, then nothing.
  std::optional<std::vector<std::size_t>> next(std::size_t batch_size) override;

  /// Epoch and position.
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace peal::train
