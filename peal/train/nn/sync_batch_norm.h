// Batch normalization by the mean and variance of the batches of all ranks. For training with few
// samples on each rank, where the statistics of one rank are poor.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <ostream>

#include <torch/nn/cloneable.h>
#include <torch/nn/options/batchnorm.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include "peal/group/process_group.h"

namespace peal::train {

/// The tensors of a batch normalization; undefined without affine or without running statistics.
struct BatchNormTensors {
  torch::Tensor weight, bias, running_mean, running_var, num_batches_tracked;
};

/// The weight of each rank's loss in the loss of the step. A rank needs it for the gradients of
/// mean and var, which depend on the losses of all ranks.
enum class LossWeights : unsigned char {
  kEqual,      // for DistributedDataParallel with Average::kMean or kSum
  kBySamples,  // for Average::kBySamples; the samples are the rows of the input
};

/// Normalizes input (N, C, ...) of any number of dimensions from 2 on, with the options and the
/// keys of torch's BatchNorm1d, 2d and 3d:
///   output = (input - mean) / sqrt(var + eps) * weight + bias
/// In training with a group, mean and var are over the samples of all ranks of the group, also for
/// the running statistics. So outputs, input gradients and running statistics are those of one
/// process with the whole batch, up to rounding, and every rank has the same statistics to the bit.
/// In all other cases this is torch's batch normalization on this rank: without a group, in a group
/// of one rank, and in eval mode.
///
/// Gradients of weight and bias are those of this rank's samples: DistributedDataParallel or
/// average_gradients averages them like all others.
///
/// With batches of different sizes and Average::kBySamples, call set_loss_weights: LossWeights has
/// to fit the average, or the gradients are not those of one process. Trainer does so itself.
///
/// A program either gives the group here, or calls convert_sync_batch_norm for all modules of a
/// model. `SyncBatchNorm norm{64};` as a member is a plain batch normalization until then.
/// Shape: (N, C, ...), C is num_features. N and the dimensions after C may differ between ranks. N
///   may be 0: such a rank takes part with an empty output.
/// Order: forward in training, and the backward pass of its output, are collective. So every rank
///   calls forward equally often. All ranks or none run backward through the output; a rank with an
///   empty output does so too. The inputs require gradients on all ranks or on none.
///   Collectives of a group run one after the other. With a group of its own (group->new_group),
///   a backward pass does not wait here for gradients that DistributedDataParallel is sending. The
///   norm needs such a group if a pass may reach different parameters on different ranks: a rank
///   that does not reach a parameter sends its bucket later than the other ranks, so in one group
///   the operations would be in another order, which is a mismatch error.
/// Errors: usage (another number of channels; all ranks together have fewer than two values for
///   each channel, then on every rank), unsupported (create_graph; tensors that are not on the
///   CPU), and those of all_gather and all_reduce.
/// Cost: forward: an all_gather of 2*C+1 f64 for each rank; backward: an all_reduce of 2*C f64, if
///   the input requires a gradient. Input of 16 bits is converted to f32 and back.
/// Source: Ioffe and Szegedy 2015, Batch Normalization; the statistics: moments.h.
class SyncBatchNormImpl final : public torch::nn::Cloneable<SyncBatchNormImpl> {
 public:
  explicit SyncBatchNormImpl(const torch::nn::BatchNormOptions& options,
                             ProcessGroupPtr group = nullptr);
  /// With these tensors in place of new tensors.
  SyncBatchNormImpl(const torch::nn::BatchNormOptions& options,
                    BatchNormTensors tensors,
                    ProcessGroupPtr group);

  torch::Tensor forward(const torch::Tensor& input);

  /// The group whose ranks share their statistics; nullptr: this rank alone.
  void set_group(ProcessGroupPtr group) { group_ = std::move(group); }
  /// Each forward pass in training first sets the group to the result of `find`. For groups that
  /// are made later, and that change.
  void set_group_source(std::function<ProcessGroupPtr()> find) { find_group_ = std::move(find); }
  const ProcessGroupPtr& group() const { return group_; }

  /// For backward passes of later forward passes. The same on every rank.
  void set_loss_weights(LossWeights weights) { loss_weights_ = weights; }

  /// New tensors with the initial values.
  void reset() override;
  void pretty_print(std::ostream& stream) const override;

  torch::nn::BatchNormOptions options;
  torch::Tensor weight, bias, running_mean, running_var, num_batches_tracked;

 private:
  void adopt(BatchNormTensors tensors);
  std::optional<double> count_batch();
  torch::Tensor normalized_here(const torch::Tensor& input);
  torch::Tensor normalized_together(const torch::Tensor& input);

  ProcessGroupPtr group_;
  std::function<ProcessGroupPtr()> find_group_;
  LossWeights loss_weights_ = LossWeights::kEqual;
};
TORCH_MODULE(SyncBatchNorm);

}  // namespace peal::train
