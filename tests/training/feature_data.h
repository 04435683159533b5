// The fixed batches of equivalence_test.cpp.
#pragma once

#include <vector>

#include <torch/torch.h>

#include "tests/training/features.h"

namespace peal::train::testing {

inline constexpr int kSteps = 50;
inline constexpr int kStepsInEpoch = 10;

struct Batch {
  torch::Tensor inputs, targets;
  torch::Tensor optional;  // 1 for samples that use the optional layer, else 0
};

/// A backward pass of one rank.
struct Pass {
  Batch batch;
  bool begins_step = false;
  bool ends_step = false;
};

/// The batches of all steps, passes and ranks.
class FeatureData {
 public:
  FeatureData(const Features& features, int ranks, torch::ScalarType type);

  /// The backward passes of each step.
  int passes() const { return passes_; }

  /// The passes of a rank in one epoch. With uneven data, ranks have different numbers of passes.
  /// But SyncBatchNorm needs all ranks in each pass, so with it they have empty batches instead.
  std::vector<Pass> of_rank(int rank, int epoch) const;

  /// The batches of one process for one step: all samples of the step in one batch. With batch
  /// norm, the samples that the ranks normalize together: those of each pass.
  std::vector<Batch> of_all_ranks(int step) const;

 private:
  const Batch& batch(int step, int pass, int rank) const;

  Features features_;
  int ranks_;
  int passes_;
  std::vector<Batch> batches_;
};

}  // namespace peal::train::testing
