// A step of data-parallel training in a group of one rank, with only the files that peal installs.
// Built and run by tests/install if peal was built with LibTorch.
#include <torch/torch.h>

#include "peal/init/init.h"
#include "peal/train/ddp/distributed_data_parallel.h"
#include "peal/train/tensors/tensors.h"

int main() {
  const auto group = peal::init_process_group();
  peal::train::DistributedDataParallel model(torch::nn::Linear(3, 1), group);
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  torch::Tensor loss = model.forward(torch::ones({2, 3})).square().mean();
  loss.backward();
  optimizer.step();
  peal::train::all_reduce(*group, loss.detach());
  return model.forward(torch::ones({2, 3})).square().mean().item<float>() <= loss.item<float>() ? 0
                                                                                                : 1;
}
