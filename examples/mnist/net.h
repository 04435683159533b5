// The network of the tutorial, twice as wide: two convolutions, two linear layers, dropout.
#pragma once

#include <torch/torch.h>

struct NetImpl : torch::nn::Module {
  explicit NetImpl(double dropout_rate) : conv2_drop(dropout_rate), dropout(dropout_rate) {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("conv2_drop", conv2_drop);
    register_module("fc1", fc1);
    register_module("dropout", dropout);
    register_module("fc2", fc2);
  }

  /// [n, 1, 28, 28] -> log probabilities [n, 10]
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(torch::max_pool2d(conv1(x), 2));
    x = torch::relu(torch::max_pool2d(conv2_drop(conv2(x)), 2));
    x = dropout(torch::relu(fc1(x.flatten(1))));
    return torch::log_softmax(fc2(x), 1);
  }

  torch::nn::Conv2d conv1{torch::nn::Conv2dOptions(1, 20, 5)};
  torch::nn::Conv2d conv2{torch::nn::Conv2dOptions(20, 40, 5)};
  torch::nn::Dropout2d conv2_drop;
  torch::nn::Linear fc1{640, 100};
  torch::nn::Dropout dropout;
  torch::nn::Linear fc2{100, 10};
};
TORCH_MODULE(Net);
