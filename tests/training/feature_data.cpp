#include "tests/training/feature_data.h"

#include <cstddef>
#include <cstdint>

namespace peal::train::testing {
namespace {

using torch::Tensor;

constexpr std::int64_t kInputs = 3, kTargets = 2;

/// The number of samples of a pass. With uneven data, the last rank has data in each pass. The
/// others run out of data before the end of the epoch, also in the middle of a step.
std::int64_t samples(const Features& features, int ranks, int rank, int pass_in_epoch, int passes) {
  if (!features.uneven_data) return 4;
  const int missing = rank + 1 == ranks ? 0 : 3 + 4 * rank;
  if (pass_in_epoch >= passes - missing) return 0;
  return rank + 1 + pass_in_epoch % 3;
}

/// Whether a rank uses the optional layer in a pass. In some passes no rank does.
bool uses_optional_layer(const Features& features, int ranks, int rank, int pass) {
  if (features.static_graph) return rank == 0;
  return (pass + rank) % (ranks + 1) == 0;
}

Batch joined(const std::vector<Batch>& batches) {
  std::vector<Tensor> inputs, targets, optional;
  for (const Batch& batch : batches) {
    inputs.push_back(batch.inputs);
    targets.push_back(batch.targets);
    optional.push_back(batch.optional);
  }
  return {torch::cat(inputs), torch::cat(targets), torch::cat(optional)};
}

}  // namespace

FeatureData::FeatureData(const Features& features, int ranks, torch::ScalarType type)
    : features_(features), ranks_(ranks), passes_(features.accumulation ? 2 : 1) {
  const auto random = at::detail::createCPUGenerator(7);
  for (int pass = 0; pass < kSteps * passes_; ++pass) {
    const int in_epoch = kStepsInEpoch * passes_;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto rows = samples(features, ranks, rank, pass % in_epoch, in_epoch);
      const Tensor inputs = torch::randn({rows, kInputs}, random, torch::kFloat64);
      const Tensor noise = torch::randn({rows, kTargets}, random, torch::kFloat64);
      const Tensor targets = inputs.narrow(1, 0, kTargets) + 0.3 * noise;
      const double use = uses_optional_layer(features, ranks, rank, pass) ? 1 : 0;
      batches_.push_back({inputs.to(type), targets.to(type), torch::full({rows, 1}, use, type)});
    }
  }
}

const Batch& FeatureData::batch(int step, int pass, int rank) const {
  return batches_[static_cast<std::size_t>((step * passes_ + pass) * ranks_ + rank)];
}

std::vector<Pass> FeatureData::of_rank(int rank, int epoch) const {
  std::vector<Pass> all;
  for (int step = epoch * kStepsInEpoch; step < (epoch + 1) * kStepsInEpoch; ++step) {
    for (int pass = 0; pass < passes_; ++pass) {
      const Batch& here = batch(step, pass, rank);
      if (here.inputs.size(0) == 0 && !features_.sync_batch_norm) return all;
      if (pass > 0) all.back().ends_step = false;
      all.push_back({.batch = here, .begins_step = pass == 0, .ends_step = true});
    }
  }
  return all;
}

std::vector<Batch> FeatureData::of_all_ranks(int step) const {
  std::vector<Batch> passes;
  for (int pass = 0; pass < passes_; ++pass) {
    std::vector<Batch> ranks;
    for (int rank = 0; rank < ranks_; ++rank) ranks.push_back(batch(step, pass, rank));
    passes.push_back(joined(ranks));
  }
  if (features_.sync_batch_norm) return passes;
  return {joined(passes)};
}

}  // namespace peal::train::testing
