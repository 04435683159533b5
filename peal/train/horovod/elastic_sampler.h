// A sampler that continues an epoch after the ranks have changed. For training programs, by
// peal/horovod.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <torch/data/samplers/base.h>

namespace peal::hvd {

/// Gives each rank a part of the samples that the epoch has not used. For
/// torch::data::make_data_loader, which takes it by value: copies share one state.
///   1. Add it to the elastic::TorchState.
///   2. Call record_batch after each batch, on all ranks alike.
///   3. Call set_epoch at the end of each epoch, not at its beginning.
/// All ranks get the same number of samples. If the samples cannot be divided evenly, the first
/// samples of the rest are repeated.
/// Order: the samples of an epoch in the order of train::data::permutation(size, seed, epoch), or
///   0, 1, ...; rank r takes the samples r, r + n, r + 2n, ... of the rest.
/// Threads: one at a time.
class ElasticSampler final : public torch::data::samplers::Sampler<> {
 public:
  enum class Order : std::uint8_t { kShuffled, kSequential };

  /// `size`: the samples of the data set. Errors: usage (before init).
  explicit ElasticSampler(std::size_t size, Order order = Order::kShuffled, std::uint64_t seed = 0);

  std::uint64_t epoch() const;
  /// The samples that the ranks together have used in this epoch.
  std::size_t processed() const;
  /// The samples that this rank gets from the next reset on.
  std::size_t size() const;

  /// Begins an epoch, in which no sample is used.
  void set_epoch(std::uint64_t epoch);
  /// Each rank has used a batch of this size.
  void record_batch(std::size_t batch_size);
  /// Continues at this point.
  void seek(std::uint64_t epoch, std::size_t processed);

  /// Divides the samples that are not used among the present ranks. A data loader calls it at the
  /// beginning of each loop.
  void reset(std::optional<std::size_t> size = std::nullopt) override;
  std::optional<std::vector<std::size_t>> next(std::size_t batch_size) override;
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace peal::hvd
