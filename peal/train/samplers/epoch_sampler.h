// Gives a rank its samples of each epoch, as a sampler for torch::data::make_data_loader. The base
// of DistributedSampler and DistributedWeightedSampler, and the sampler for an order of your own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <torch/data/samplers/base.h>

#include "peal/base/units.h"
#include "peal/train/data/epoch_cursor.h"

namespace peal::train {

/// Shares out the samples of an epoch. The common order, by (size, seed, epoch), is cut into rounds
/// of `ranks` samples, and this rank takes the rank-th sample of each round. A data loader takes
/// its sampler by value. Copies share one state, so the program controls the loader's sampler by
/// its own copy:
///   EpochSampler sampler({.size = 1000, .rank = group->rank(), .ranks = group->size(),
///                         .seed = 1, .order = my_order});
///   auto loader = torch::data::make_data_loader(dataset, sampler, batch_size);
///   for (int epoch = 0; epoch < 10; ++epoch) for (auto& batch : *loader) ...
///
/// Epochs: each loop over the loader is an epoch. The first loop is epoch 0, and each later loop is
/// the next epoch, also after a `break`. set_epoch() chooses another. After seek() or load(), the
/// next loop continues at that position of that epoch. If all its samples are taken, that loop is
/// empty.
///
/// Remainder: with kPad and kDrop all ranks take the same number of samples. With kUneven no sample
/// is lost or repeated, but ranks may differ by one sample, and so by one batch. A training loop
/// then needs a rule for the ranks that end first (batches() says which). Evaluation needs
/// kUneven and a sequential order: then each sample counts once in a sum over ranks.
///
/// A loader with workers takes samples ahead of the loop, so its `break` and its position need
/// `counted` (counted.h).
/// Threads: one at a time.
class EpochSampler : public torch::data::samplers::Sampler<> {
 public:
  /// Options: the size, seed and order are the same on every rank.
  /// Errors: usage (a rank outside of 0 .. ranks - 1, no order).
  explicit EpochSampler(data::EpochOptions options);

  /// Begins this epoch from its first sample. Pass the same epoch on every rank. After seek() or
  /// load() into the same epoch, the position stays.
  void set_epoch(std::uint64_t epoch);
  std::uint64_t epoch() const;
  std::uint64_t seed() const;
  /// The number of samples of an epoch, on all ranks together.
  std::size_t size() const;
  Rank rank() const;
  int ranks() const;

  /// The number of samples that all ranks together have taken in this epoch, if each rank has made
  /// as many batches as this rank, of the same size. So it is an index into the common order. From
  /// there any number of ranks can continue the epoch. In a loop over `counted`, samples count when
  /// the loop receives their batch; else when the loader takes them.
  std::size_t position() const;
  /// Continues from `position`, even after the next reset(), with which a data loader begins.
  /// Errors: usage (beyond the end).
  void seek(std::size_t position);

  /// The number of samples that this rank still takes in this epoch, as position() counts.
  std::size_t remaining() const;
  /// The number of batches that `remaining()` samples make. Errors: usage (batches of 0 samples).
  std::size_t batches(std::size_t batch_size,
                      data::ShortBatch short_batch = data::ShortBatch::kKeep) const;

  /// Begins the next epoch if next() was called in this epoch. With `size`, all epochs from now on
  /// have `size` samples. Data loaders call it in begin().
  void reset(std::optional<std::size_t> size = std::nullopt) override;
  /// The next `batch_size` indices; fewer at the end of the epoch, and nullopt after that.
  /// Errors: those of the order; usage (the order has the wrong size).
  std::optional<std::vector<std::size_t>> next(std::size_t batch_size) override;

  /// Saves epoch and position, and the size and the seed to compare.
  void save(torch::serialize::OutputArchive& archive) const override;
  /// Continues at the saved epoch and position.
  /// Errors: usage (saved with another size or seed: the position means other samples).
  void load(torch::serialize::InputArchive& archive) override;

 private:
  template <class Loader>
  friend class CountedBatches;

  std::shared_ptr<data::EpochCursor> cursor_;
};

}  // namespace peal::train
