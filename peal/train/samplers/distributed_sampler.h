// Chooses a rank's samples of an epoch, as a sampler for torch::data::make_data_loader.
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

/// Shares out the samples of an epoch. The common order, by (seed, epoch), is cut into rounds of
/// `ranks` samples, and this rank takes the rank-th sample of each round. Every rank takes the same
/// number. Together the ranks lose no sample (kPad, the default) or repeat no sample (kDrop).
///
/// A data loader takes its sampler by value. Copies share one state, so the program controls the
/// loader's sampler by its own copy:
///   DistributedSampler sampler(dataset.size(), group->rank(), group->size());
///   auto loader = torch::data::make_data_loader(dataset, sampler, batch_size);
///   for (...) { sampler.set_epoch(epoch); for (auto& batch : *loader) ... }
/// Threads: one at a time.
class DistributedSampler final : public torch::data::samplers::Sampler<> {
 public:
  /// Errors: usage (a rank outside of 0 .. ranks - 1).
  DistributedSampler(std::size_t size, Rank rank, int ranks, SamplerOptions options = {});

  /// Begins this epoch; pass the same epoch on every rank. Each epoch has another order.
  void set_epoch(std::uint64_t epoch);
  std::uint64_t epoch() const;

  /// The number of samples that all ranks together have taken in this epoch, if each has taken as
  /// many as this rank. From this position any number of ranks can continue the epoch. A data
  /// loader that prefetches (workers > 0) has taken more samples than it has returned.
  std::size_t position() const;
  /// Continues from `position`, even after the next reset(), with which a data loader begins.
  /// Errors: usage (beyond the end).
  void seek(std::size_t position);

  /// The number of samples that this rank still takes in this epoch.
  std::size_t remaining() const;

  /// Begins the epoch again, or with `size`, an epoch of `size` samples.
  void reset(std::optional<std::size_t> size = std::nullopt) override;
  /// The next `batch_size` indices; fewer at the end of the epoch, and nullopt after that.
  std::optional<std::vector<std::size_t>> next(std::size_t batch_size) override;

  /// Saves epoch and position.
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace peal::train
