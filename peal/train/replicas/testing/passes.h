// A net, its batches and a loss for the tests of DataParallel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/train/replicas/data_parallel.h"

namespace peal::train::testing {

inline ReplicaOptions on_cpus(int count) {
  return {.devices = std::vector<torch::Device>(static_cast<std::size_t>(count), torch::kCPU)};
}

inline torch::nn::Sequential make_net() {
  torch::manual_seed(1);
  torch::nn::Sequential net(torch::nn::Linear(3, 5), torch::nn::Tanh(), torch::nn::Linear(5, 2));
  net->to(torch::kFloat64);
  return net;
}

inline torch::Tensor make_batch(std::int64_t samples) {
  const auto random = at::detail::createCPUGenerator(7);
  return torch::randn({samples, 3}, random, torch::kFloat64);
}

/// A loss whose gradient differs for each sample.
inline torch::Tensor loss_of(const torch::Tensor& output) {
  const torch::Tensor weights = torch::arange(1, output.size(0) + 1, output.device());
  return (output.square() * weights.view({-1, 1})).sum();
}

/// The tensors may be on different devices.
inline void expect_close(const torch::Tensor& one, const torch::Tensor& other) {
  EXPECT_TRUE(one.cpu().allclose(other.cpu(), 1e-12, 1e-12)) << one << other;
}

}  // namespace peal::train::testing
