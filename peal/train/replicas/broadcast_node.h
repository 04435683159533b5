// The copy of the parameters to the replicas, as a node of autograd. It brings the gradients of all
// replicas back to the parameters of the module. Used by `ReplicaSet`.
#pragma once

#include <c10/core/Device.h>

#include <cstddef>
#include <functional>
#include <vector>

#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

#include "peal/base/clock.h"

namespace peal::train {

/// Backward of copies[c][p] = parameter[p]:
///   gradient[p] = gradient of copies[0][p] + gradient of copies[1][p] + ...
/// in this order, on the device of the parameter. Missing gradients are skipped. The sum can be
/// differentiated again.
/// Source: Python's replicate and ReduceAddCoalesced in torch.nn.parallel.
class BroadcastNode final : public torch::autograd::Node {
 public:
  using Report = std::function<void(Duration)>;
  /// A std::shared_ptr in LibTorch 2.11, and later a c10::intrusive_ptr.
  using Ptr = decltype(torch::autograd::Edge::function);

  /// `report` receives the time of each sum.
  BroadcastNode(const std::vector<torch::Tensor>& parameters, Report report);

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override;

 private:
  std::vector<torch::Device> devices_;  // of the parameters
  Report report_;
};

/// Make the copies outputs of the node with torch::autograd::set_history, one copy of all
/// parameters after the other.
BroadcastNode::Ptr make_broadcast_node(const std::vector<torch::Tensor>& parameters,
                                       BroadcastNode::Report report);

}  // namespace peal::train
