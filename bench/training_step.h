// A training step, and the median of measurements, for the measurements of training.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include <torch/torch.h>

#include "peal/group/process_group.h"
#include "peal/train/ddp/distributed_data_parallel.h"

using Step = std::function<void()>;

/// A step of SGD: forward, backward, `after_backward`, update. With a group, the gradients are
/// averaged over its ranks by DistributedDataParallel; null: the module trains alone.
template <class Module>
Step make_step(const std::shared_ptr<Module>& net,
               const peal::ProcessGroupPtr& group,
               const torch::Tensor& input,
               const torch::Tensor& target,
               const std::function<void()>& after_backward = {}) {
  using Model = peal::train::DistributedDataParallel<Module>;
  const auto model = group ? std::make_shared<Model>(net, group) : nullptr;
  const auto optimizer = std::make_shared<torch::optim::SGD>(net->parameters(), 0.001);
  return [=] {
    optimizer->zero_grad();
    const torch::Tensor output = model ? model->forward(input) : net->forward(input);
    torch::cross_entropy_loss(output.flatten(0, -2), target.flatten()).backward();
    if (after_backward) after_backward();
    optimizer->step();
  };
}

inline double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}
