#include "peal/train/replicas/broadcast_node.h"

#include <memory>
#include <type_traits>
#include <utility>

#include <torch/types.h>

namespace peal::train {
namespace {

template <class Pointer, class... Arguments>
Pointer make_node(Arguments&&... arguments) {
  if constexpr (std::is_same_v<Pointer, std::shared_ptr<torch::autograd::Node>>) {
    return std::make_shared<BroadcastNode>(std::forward<Arguments>(arguments)...);
  } else {
    return c10::make_intrusive<BroadcastNode>(std::forward<Arguments>(arguments)...);
  }
}

}  // namespace

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

BroadcastNode::Ptr make_broadcast_node(const std::vector<torch::Tensor>& parameters,
                                       BroadcastNode::Report report) {
  return make_node<BroadcastNode::Ptr>(parameters, std::move(report));
}

}  // namespace peal::train
