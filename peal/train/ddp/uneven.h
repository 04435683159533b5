// Training when ranks have different numbers of batches.
#pragma once

#include <functional>
#include <utility>

namespace peal::train {

/// Batches of a loader, for a loop that runs until every rank has used all its batches:
///   for (auto& batch : uneven(*loader, model, [&] { optimizer.step(); })) {
///     optimizer.zero_grad();
///     torch::nll_loss(model.forward(batch.data), batch.target).backward();
///     optimizer.step();
///   }
/// A rank without batches takes part in the backward passes of the other ranks, and calls `step`
/// after each. So all ranks take the same steps, and their optimizers keep the same state. With
/// Average::kBySamples each step is that of one process on the samples of all ranks.
/// `step` does what the loop does after backward(): the optimizer's step, and a scheduler's.
/// Order: every rank runs such a loop, also a rank without any batch. Each loop ends with a pass in
///   which no rank has data. In the loop, a window of no_sync() passes ends with a pass that
///   communicates, and one step.
template <class Loader, class Model>
class UnevenBatches final {
 public:
  UnevenBatches(Loader& loader, Model& model, std::function<void()> step)
      : loader_(loader), model_(model), step_(std::move(step)) {}

  struct End {};

  class Iterator {
   public:
    explicit Iterator(UnevenBatches& batches)
        : batches_(batches), now_(batches.loader_.begin()), end_(batches.loader_.end()) {}

    decltype(auto) operator*() { return *now_; }
    Iterator& operator++() {
      ++now_;
      return *this;
    }
    /// When the loader has ended, returns only when it has ended on all ranks.
    bool operator!=(End) {
      if (now_ != end_) return true;
      batches_.follow_others();
      return false;
    }

   private:
    UnevenBatches& batches_;
    decltype(std::declval<Loader&>().begin()) now_, end_;
  };

  Iterator begin() { return Iterator(*this); }
  End end() const { return {}; }

 private:
  void follow_others() {
    for (;;) {
      model_->zero_grad();
      if (!model_.pass_without_data()) return;
      step_();
    }
  }

  Loader& loader_;
  Model& model_;
  std::function<void()> step_;
};

template <class Loader, class Model>
UnevenBatches<Loader, Model> uneven(Loader& loader, Model& model, std::function<void()> step) {
  return {loader, model, std::move(step)};
}

}  // namespace peal::train
