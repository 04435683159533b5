// A loop over a data loader whose sampler knows which batches the loop has received. For
// checkpoints in the middle of an epoch, and for loops that end early.
#pragma once

#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>

#include <torch/data/iterator.h>
#include <torch/data/worker_exception.h>

#include "peal/base/error.h"
#include "peal/train/samplers/epoch_sampler.h"

namespace peal::train {

/// The batches of one epoch of `loader`, for a range-based for loop; see counted().
template <class Loader>
class CountedBatches final {
 public:
  using Batch = typename Loader::BatchType;

  CountedBatches(Loader& loader, const EpochSampler& sampler)
      : loader_(loader), cursor_(sampler.cursor_) {
    if (loader.options().workers > 1 && !loader.options().enforce_ordering) {
      throw Error(ErrorKind::kUnsupported,
                  "a loader without enforce_ordering returns batches in any order, so no position "
                  "describes the batches that the loop has received: enforce the order, or loop "
                  "over the loader itself and continue only at the end of an epoch");
    }
  }
  ~CountedBatches() { stop(); }
  CountedBatches(const CountedBatches&) = delete;
  CountedBatches& operator=(const CountedBatches&) = delete;

  class Iterator {
   public:
    using difference_type = std::ptrdiff_t;
    using value_type = Batch;
    using iterator_category = std::input_iterator_tag;

    explicit Iterator(CountedBatches* batches) : batches_(batches) {}
    Batch& operator*() const { return **batches_->loaded_; }
    Batch* operator->() const { return &**this; }
    Iterator& operator++() {
      ++*batches_->loaded_;
      batches_->receive();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return !batches_->loaded_; }

   private:
    CountedBatches* batches_;
  };

  /// Begins the epoch, as the loader's begin() does.
  Iterator begin() {
    stop();
    cursor_->count_uses_after_restart();
    loaded_.emplace(loader_.begin());
    receive();
    return Iterator(this);
  }
  std::default_sentinel_t end() const { return std::default_sentinel; }

 private:
  /// Counts the batch that was loaded, or the end of the epoch.
  void receive() {
    if (*loaded_ != loader_.end()) {
      cursor_->use();
    } else {
      cursor_->use_all();
      loaded_.reset();
    }
  }

  /// Ends a loop that was left early. Waits for the batches that are being loaded and drops them,
  /// because LibTorch's loader cannot begin again before. The sampler gives no further samples.
  void stop() noexcept {
    if (!loaded_) return;
    cursor_->close();
    while (!drained()) {
    }
    loaded_.reset();
  }

  /// Takes one batch from the loader. Returns whether that was the last.
  bool drained() noexcept {
    try {
      ++*loaded_;
      return *loaded_ == loader_.end();
    } catch (const torch::data::WorkerException&) {
      return false;  // a batch that failed to load is dropped like the others
    } catch (...) {
      return true;  // the loader's timeout, or its end was reached
    }
  }

  Loader& loader_;
  std::shared_ptr<data::EpochCursor> cursor_;
  std::optional<torch::data::Iterator<Batch>> loaded_;  // nullopt before begin() and at the end
};

/// A loop over the batches of one epoch, in which the sampler's position counts the batches that
/// the loop has received, also the current one:
///   for (auto& batch : counted(*loader, sampler)) {
///     train(batch);
///     if (time_to_save()) save(model, sampler.epoch(), sampler.position());
///     if (done()) break;
///   }
/// `sampler` is the sampler of the loader, or a copy of it. The program may leave the loop at any
/// time, by `break` or by an exception. The end of the loop then waits for batches that workers are
/// loading, and drops them. They do not count. The next loop is the next epoch; to continue this
/// one, call sampler.seek(sampler.position()) before.
/// The position holds if all ranks have received the same number of batches, of the same size. At
/// the end of the loop the epoch is over on this rank, also if the loader dropped a last batch.
/// Threads: the loader must not be used otherwise during the loop, and must outlive it.
/// Errors: unsupported (several workers without enforce_ordering), usage (a sampler that is not the
///   loader's). The loop throws the errors of the loader. After a timeout of a worker, LibTorch's
///   loader cannot begin again.
/// Cost: leaving the loop early loads at most DataLoaderOptions::max_jobs batches.
template <class Loader>
CountedBatches<Loader> counted(Loader& loader, const EpochSampler& sampler) {
  return CountedBatches<Loader>(loader, sampler);
}

}  // namespace peal::train
