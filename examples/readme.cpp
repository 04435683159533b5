// The example of README.md: tests/readme sees to it that the two are the same.
#include <iostream>

#include <torch/torch.h>

#include "peal/init/init.h"
#include "peal/train/distributed_data_parallel.h"

int main() {
  const auto group = peal::init_process_group();  // who and where: from the environment
  torch::nn::Linear net(4, 1);
  peal::train::DistributedDataParallel model(net, group);  // rank 0's parameters become everyone's
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  torch::manual_seed(group->rank());  // every rank has samples of its own
  for (int step = 0; step < 100; ++step) {
    const auto x = torch::randn({32, 4});
    optimizer.zero_grad();
    torch::mse_loss(model.forward(x), x.sum(1, true)).backward();  // and averages the gradients
    optimizer.step();
  }
  if (group->rank() == 0) std::cout << net->weight << "\n";  // ones: the net has learned to sum
}
