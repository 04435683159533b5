// Trains the net of python/tests/test_same_losses.py from its weights and on its batches, on the
// ranks of a job:
//   peal run -n 2 peal_test_losses FOLDER
// FOLDER has net.safetensors, with the state_dict, and batches.safetensors: "images" and "labels"
// by step and rank. Rank R writes cpp-R.safetensors: "losses" and "gradients" of each step, and the
// state_dict after the last step.
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "peal/init/init.h"
#include "peal/train/checkpoint/module_tensors.h"
#include "peal/train/checkpoint/stored_tensors.h"
#include "peal/train/ddp/distributed_data_parallel.h"

namespace {

namespace train = peal::train;
using torch::Tensor;

struct Net : torch::nn::Module {
  Net() {
    register_module("conv", conv);
    register_module("norm", norm);
    register_module("hidden", hidden);
    register_module("out", out);
  }
  Tensor forward(const Tensor& images) {
    const Tensor x = torch::max_pool2d(torch::relu(norm(conv(images))), 2);
    return out(torch::relu(hidden(x.flatten(1))));
  }
  torch::nn::Conv2d conv{torch::nn::Conv2dOptions(1, 4, 3)};
  torch::nn::BatchNorm2d norm{4};
  torch::nn::Linear hidden{36, 16}, out{16, 4};
};

Tensor flat_gradient(const Net& net) {
  std::vector<Tensor> all;
  for (const Tensor& parameter : net.parameters()) all.push_back(parameter.grad().flatten());
  return torch::cat(all);
}

void run(const std::filesystem::path& folder) {
  const peal::ProcessGroupPtr group = peal::init_process_group();
  const auto net = std::make_shared<Net>();
  train::load_module(*net, train::load_tensors(folder / "net.safetensors"));
  const train::TensorMap batches = train::load_tensors(folder / "batches.safetensors");

  train::DistributedDataParallel model(net, group);
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  std::vector<Tensor> losses, gradients;
  for (std::int64_t step = 0; step < batches.at("images").size(0); ++step) {
    const Tensor images = batches.at("images")[step][group->rank()];
    const Tensor labels = batches.at("labels")[step][group->rank()];
    optimizer.zero_grad();
    const Tensor loss = torch::cross_entropy_loss(model.forward(images), labels);
    loss.backward();
    losses.push_back(loss.detach());
    gradients.push_back(flat_gradient(*net));
    optimizer.step();
  }
  train::TensorMap results = train::module_tensors(*net);
  results["losses"] = torch::stack(losses);
  results["gradients"] = torch::stack(gradients);
  train::save_tensors(folder / ("cpp-" + std::to_string(group->rank()) + ".safetensors"), results);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: peal_test_losses FOLDER\n";
    return 2;
  }
  try {
    run(argv[1]);
  } catch (const std::exception& error) {
    std::cerr << "peal_test_losses: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
