// The module that equivalence_test.cpp trains.
#pragma once

#include <memory>

#include <torch/torch.h>

#include "tests/training/features.h"

namespace peal::train::testing {

/// Smooth everywhere, so that a difference of rounding stays small.
struct FeatureNet : torch::nn::Module {
  explicit FeatureNet(const Features& features) {
    using torch::nn::LinearOptions;
    // The first layer is in the last bucket, so that other buckets do not wait for it.
    if (features.unused) never = register_module("never", torch::nn::Linear(4, 4));
    // Batch norm removes the mean, so a bias before it would have a gradient of only rounding.
    body->push_back(torch::nn::Linear(LinearOptions(3, 4).bias(!features.sync_batch_norm)));
    if (features.sync_batch_norm) body->push_back(torch::nn::BatchNorm1d(4));
    register_module("body", body);
    first = register_module("first", torch::nn::Linear(4, 4));
    second = register_module("second", features.tied ? first : torch::nn::Linear(4, 4));
    if (features.unused) {
      optional = register_module("optional", torch::nn::Linear(4, 4));
    }
    out = register_module("out", torch::nn::Linear(4, 2));
  }

  /// `uses_optional` is 1 for samples that use the optional layer, else 0.
  torch::Tensor forward(const torch::Tensor& inputs, const torch::Tensor& uses_optional) {
    torch::Tensor x = torch::tanh(body->forward(inputs));
    x = torch::tanh(second(torch::tanh(first(x))));
    if (optional && uses_optional.any().item<bool>()) {
      x = x + uses_optional * torch::tanh(optional(x));
    }
    return out(x);
  }

  torch::nn::Sequential body;
  torch::nn::Linear first{nullptr}, second{nullptr}, optional{nullptr}, never{nullptr},
      out{nullptr};
};

/// Always with the same parameters. Not for several threads, because LibTorch's random generator
/// belongs to the process.
inline std::shared_ptr<FeatureNet> feature_net(const Features& features, torch::ScalarType type) {
  torch::manual_seed(1);
  auto net = std::make_shared<FeatureNet>(features);
  net->to(type);
  return net;
}

}  // namespace peal::train::testing
