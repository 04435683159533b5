#include "peal/train/replicas/broadcast_node.h"

#include <utility>

#include <torch/types.h>

namespace peal::train {

BroadcastNode::BroadcastNode(const std::vector<torch::Tensor>& parameters, Report report)
    : report_(std::move(report)) {
  for (const torch::Tensor& parameter : parameters) devices_.push_back(parameter.device());
  set_next_edges(torch::autograd::collect_next_edges(parameters));
}

torch::autograd::variable_list BroadcastNode::apply(torch::autograd::variable_list&& gradients) {
  const TimePoint start = Clock::now();
  torch::autograd::variable_list sums(devices_.size());
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) continue;
    torch::Tensor& sum = sums[i % sums.size()];
    const torch::Tensor gradient = gradients[i].to(devices_[i % sums.size()]);
    sum = sum.defined() ? sum + gradient : gradient;
  }
  report_(Clock::now() - start);
  return sums;
}

}  // namespace peal::train
