#include "peal/train/nn/sync_batch_norm.h"

#include <utility>
#include <vector>

#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/train/nn/moments.h"
#include "peal/train/nn/synchronized_normalization.h"

namespace peal::train {

SyncBatchNormImpl::SyncBatchNormImpl(const torch::nn::BatchNormOptions& batch_norm_options,
                                     ProcessGroupPtr group)
    : options(batch_norm_options), group_(std::move(group)) {
  reset();
}

SyncBatchNormImpl::SyncBatchNormImpl(const torch::nn::BatchNormOptions& batch_norm_options,
                                     BatchNormTensors tensors,
                                     ProcessGroupPtr group)
    : options(batch_norm_options), group_(std::move(group)) {
  adopt(std::move(tensors));
}

void SyncBatchNormImpl::reset() {
  BatchNormTensors tensors;
  if (options.affine()) {
    tensors.weight = torch::ones({options.num_features()});
    tensors.bias = torch::zeros({options.num_features()});
    tensors.weight.set_requires_grad(!weight.defined() || weight.requires_grad());
    tensors.bias.set_requires_grad(!bias.defined() || bias.requires_grad());
  }
  if (options.track_running_stats()) {
    tensors.running_mean = torch::zeros({options.num_features()});
    tensors.running_var = torch::ones({options.num_features()});
    tensors.num_batches_tracked = torch::tensor(0, torch::kInt64);
  }
  adopt(std::move(tensors));
}

void SyncBatchNormImpl::adopt(BatchNormTensors tensors) {
  const auto requires_grad = [](const torch::Tensor& parameter) {
    return parameter.defined() && parameter.requires_grad();
  };
  weight = register_parameter("weight", tensors.weight, requires_grad(tensors.weight));
  bias = register_parameter("bias", tensors.bias, requires_grad(tensors.bias));
  running_mean = register_buffer("running_mean", tensors.running_mean);
  running_var = register_buffer("running_var", tensors.running_var);
  num_batches_tracked = register_buffer("num_batches_tracked", tensors.num_batches_tracked);
}

torch::Tensor SyncBatchNormImpl::forward(const torch::Tensor& input) {
  if (input.dim() < 2 || input.size(1) != options.num_features()) {
    throw Error(ErrorKind::kUsage,
                c10::str("batch normalization of ",
                         options.num_features(),
                         " channels got an input of shape ",
                         input.sizes(),
                         ": the second dimension must be the channels"));
  }
  if (find_group_ && is_training()) group_ = find_group_();
  const bool together = is_training() && group_ && group_->size() > 1;
  return together ? normalized_together(input) : normalized_here(input);
}

/// Returns the weight of this batch in the running statistics; nullopt if these do not change.
std::optional<double> SyncBatchNormImpl::count_batch() {
  if (!is_training() || !num_batches_tracked.defined()) return std::nullopt;
  num_batches_tracked += 1;
  if (options.momentum()) return options.momentum();
  return 1.0 / static_cast<double>(num_batches_tracked.item<std::int64_t>());
}

torch::Tensor SyncBatchNormImpl::normalized_here(const torch::Tensor& input) {
  const bool by_batch = is_training() || !running_mean.defined();
  const std::optional<double> momentum = count_batch();
  return torch::nn::functional::detail::batch_norm(input,
                                                   running_mean,
                                                   running_var,
                                                   weight,
                                                   bias,
                                                   by_batch,
                                                   momentum.value_or(0),
                                                   options.eps());
}

torch::Tensor SyncBatchNormImpl::normalized_together(const torch::Tensor& input) {
  const GlobalStatistics statistics = global_statistics(*group_, input);
  if (const auto momentum = count_batch()) {  // after the call that may throw
    const torch::NoGradGuard no_grad;
    const double unbiased = statistics.count / (statistics.count - 1);
    running_mean.mul_(1 - *momentum).add_(statistics.mean, *momentum);
    running_var.mul_(1 - *momentum).add_(statistics.variance, *momentum * unbiased);
  }
  return synchronized_normalization(
      group_,
      input,
      statistics,
      {.weight = weight, .bias = bias, .eps = options.eps()},
      loss_weights_ == LossWeights::kEqual ? 1 : static_cast<double>(input.size(0)));
}

void SyncBatchNormImpl::pretty_print(std::ostream& stream) const {
  stream << std::boolalpha << "peal::train::SyncBatchNorm(" << options.num_features()
         << ", eps=" << options.eps() << ", momentum=";
  if (options.momentum()) {
    stream << *options.momentum();
  } else {
    stream << "None";
  }
  stream << ", affine=" << options.affine()
         << ", track_running_stats=" << options.track_running_stats()
         << ", ranks=" << (group_ ? group_->size() : 1) << ")";
}

}  // namespace peal::train
