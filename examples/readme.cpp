// The example of README.md. tests/readme checks that the two are the same.
#include <iostream>

#include <torch/torch.h>

#include "peal/init/init.h"
#include "peal/train/ddp/distributed_data_parallel.h"

int main() {
  const auto group = peal::init_process_group();  // rank and address: from the environment
  torch::nn::Linear net(4, 1);
  peal::train::DistributedDataParallel model(net, group);  // all ranks get rank 0's parameters
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  torch::manual_seed(group->rank());  // every rank draws other samples
  for (int step = 0; step < 100; ++step) {
    const auto x = torch::randn({32, 4});
    optimizer.zero_grad();
    torch::mse_loss(model.forward(x), x.sum(1, true)).backward();  // averages the gradients
    optimizer.step();
  }
  if (group->rank() == 0) std::cout << net->weight << "\n";  // about 1 1 1 1
}
