// Small modules to train in tests.
#pragma once

#include <memory>
#include <vector>

#include <torch/torch.h>

namespace peal::train::testing {

/// Convolution and two linear layers on 1 x 8 x 8 pictures of 4 classes.
struct SmallNet : torch::nn::Module {
  SmallNet() {
    register_module("conv", conv);
    register_module("hidden", hidden);
    register_module("out", out);
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::max_pool2d(torch::relu(conv(x)), 2).flatten(1);
    return torch::log_softmax(out(torch::relu(hidden(x))), 1);
  }
  torch::nn::Conv2d conv{torch::nn::Conv2dOptions(1, 4, 3)};
  torch::nn::Linear hidden{36, 16};
  torch::nn::Linear out{16, 4};
};

/// Two layers, of which a forward pass uses one or both.
struct TwoPaths : torch::nn::Module {
  enum class Path { kFirst, kBoth };

  TwoPaths() {
    register_module("first", first);
    register_module("second", second);
  }
  torch::Tensor forward(const torch::Tensor& x, Path path = Path::kBoth) {
    return path == Path::kBoth ? second(first(x)) : first(x);
  }
  torch::nn::Linear first{3, 3};
  torch::nn::Linear second{3, 3};
};

/// Equal modules, one for each rank. Built one after the other, because LibTorch's random generator
/// belongs to the process.
template <class Net>
std::vector<std::shared_ptr<Net>> replicas(int count, std::uint64_t seed = 1) {
  std::vector<std::shared_ptr<Net>> nets;
  for (int i = 0; i < count; ++i) {
    torch::manual_seed(seed);
    nets.push_back(std::make_shared<Net>());
  }
  return nets;
}

/// All parameters, one after the other, as f64.
inline torch::Tensor flat_parameters(const torch::nn::Module& module) {
  std::vector<torch::Tensor> flat;
  for (const torch::Tensor& parameter : module.parameters()) {
    flat.push_back(parameter.detach().to(torch::kFloat64).flatten());
  }
  return torch::cat(flat);
}

/// All gradients, one after the other, as f64; zeros for missing gradients.
inline torch::Tensor flat_gradients(const torch::nn::Module& module) {
  std::vector<torch::Tensor> flat;
  for (const torch::Tensor& parameter : module.parameters()) {
    const torch::Tensor& gradient = parameter.grad();
    flat.push_back((gradient.defined() ? gradient : torch::zeros_like(parameter))
                       .detach()
                       .to(torch::kFloat64)
                       .flatten());
  }
  return torch::cat(flat);
}

}  // namespace peal::train::testing
