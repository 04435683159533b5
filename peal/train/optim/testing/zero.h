// A small net, and a training with fixed gradients, for the tests of ZeroRedundancyOptimizer.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/train/optim/optimizer_state.h"
#include "peal/train/optim/zero_redundancy_optimizer.h"
#include "peal/train/testing/nets.h"

namespace peal::train::testing {

using Groups = ShardedOptimizer::Groups;
using NetPtr = std::shared_ptr<SmallNet>;
using ZeroAdamW = ZeroRedundancyOptimizer<torch::optim::AdamW>;

/// A net of this type, with the same values in each call. Ranks may call it at the same time,
/// because it does not use LibTorch's generator, which all threads share.
inline NetPtr make_net(torch::ScalarType type = torch::kFloat64) {
  auto net = std::make_shared<SmallNet>();
  const auto random = at::detail::createCPUGenerator(1);
  const torch::NoGradGuard no_grad;
  for (torch::Tensor parameter : net->parameters()) parameter.uniform_(-0.3, 0.3, random);
  net->to(type);
  return net;
}

/// Gradients as all ranks have them after a backward pass of DistributedDataParallel.
inline void set_gradients(const SmallNet& net, int step) {
  const auto random = at::detail::createCPUGenerator(static_cast<std::uint64_t>(step + 10));
  std::size_t index = 0;
  for (torch::Tensor parameter : net.parameters()) {
    const torch::Tensor values = torch::randn(parameter.sizes(), random, torch::kFloat64);
    const bool has_gradient = (index++ + static_cast<std::size_t>(step)) % 5 != 0;
    parameter.mutable_grad() = has_gradient && parameter.requires_grad()
                                   ? values.to(parameter.scalar_type())
                                   : torch::Tensor();
  }
}

/// The weights and the biases.
inline Groups two_groups(const SmallNet& net) {
  std::vector<torch::Tensor> weights, biases;
  for (const torch::Tensor& parameter : net.parameters()) {
    (parameter.dim() > 1 ? weights : biases).push_back(parameter);
  }
  return {torch::optim::OptimizerParamGroup(weights), torch::optim::OptimizerParamGroup(biases)};
}

/// Halves the rate of all groups every ten steps, and treats the groups differently.
template <class Step>
void train(torch::optim::Optimizer& optimizer, const SmallNet& net, int from, int to, Step&& step) {
  for (int i = from; i < to; ++i) {
    if (i % 10 == 9) {
      for (auto& group : optimizer.param_groups()) {
        group.options().set_lr(group.options().get_lr() / 2);
      }
    }
    optimizer.zero_grad();
    set_gradients(net, i);
    step(optimizer);
  }
}

inline void plain_step(torch::optim::Optimizer& optimizer) { optimizer.step(); }

inline void expect_same_state(const OptimizerState& one, const OptimizerState& other) {
  EXPECT_EQ(one.algorithm, other.algorithm);
  ASSERT_EQ(one.groups.size(), other.groups.size());
  for (std::size_t i = 0; i < one.groups.size(); ++i) {
    EXPECT_EQ(one.groups[i].options, other.groups[i].options);
    EXPECT_EQ(one.groups[i].parameters, other.groups[i].parameters);
  }
  ASSERT_EQ(one.parameters.size(), other.parameters.size());
  for (const auto& [name, fields] : one.parameters) {
    ASSERT_EQ(fields.size(), other.parameters.at(name).size());
    for (const auto& [field, value] : fields) {
      EXPECT_TRUE(value.allclose(other.parameters.at(name).at(field), 1e-12, 1e-12))
          << name << " " << field;
    }
  }
}

}  // namespace peal::train::testing
