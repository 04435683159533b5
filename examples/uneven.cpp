// Ranks with different numbers of batches, of different sizes (from build/release/bin):
//   peal run -n 3 ./uneven
// Rank r has 2 * r + 1 batches; rank 0 has the fewest. No rank waits for ever, and no sample is
// left out: every step equals one process on the samples of all ranks. The program compares the
// result.
#include "peal/train/ddp/uneven.h"

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <vector>

#include <CLI/CLI.hpp>
#include <torch/torch.h>

#include "peal/init/init.h"
#include "peal/train/ddp/distributed_data_parallel.h"
#include "peal/train/trainer/metrics.h"

#include "command_line.h"

namespace {

namespace train = peal::train;
using torch::Tensor;

struct Batch {
  Tensor x, y;
};

std::vector<Batch> batches_of(int rank) {
  const auto random = at::detail::createCPUGenerator(static_cast<std::uint64_t>(rank + 1));
  std::vector<Batch> batches;
  for (int i = 0; i < 2 * rank + 1; ++i) {
    const Tensor x = torch::randn({3 + rank + i, 4}, random, torch::kDouble);
    batches.push_back({x, x.sum(1, /*keepdim=*/true)});
  }
  return batches;
}

torch::nn::Linear make_model() {
  torch::manual_seed(1);
  torch::nn::Linear model(4, 1);
  model->to(torch::kDouble);
  return model;
}

/// Step i is on the i-th batch of each rank that has one.
Tensor train_alone(int ranks) {
  torch::nn::Linear model = make_model();
  torch::optim::Adam optimizer(model->parameters(), 0.05);
  for (std::size_t i = 0; i < static_cast<std::size_t>(2 * ranks - 1); ++i) {
    std::vector<Tensor> x, y;
    for (int rank = 0; rank < ranks; ++rank) {
      const std::vector<Batch> batches = batches_of(rank);
      if (i >= batches.size()) continue;
      x.push_back(batches[i].x);
      y.push_back(batches[i].y);
    }
    optimizer.zero_grad();
    torch::mse_loss(model->forward(torch::cat(x)), torch::cat(y)).backward();
    optimizer.step();
  }
  return model->weight;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Trains on ranks with different amounts of data, and compares with one process");
  if (const auto code = parse_command_line(app, argc, argv)) return *code;
  const peal::ProcessGroupPtr group = peal::init_process_group();
  torch::nn::Linear net = make_model();
  train::DistributedDataParallel model(net, group, {.average = train::Average::kBySamples});
  torch::optim::Adam optimizer(net->parameters(), 0.05);
  std::vector<Batch> batches = batches_of(group->rank());
  train::Metrics metrics;

  // A rank whose batches are used up follows the other ranks, and takes the same steps.
  for (const Batch& batch : train::uneven(batches, model, [&] { optimizer.step(); })) {
    optimizer.zero_grad();
    const Tensor loss = torch::mse_loss(model.forward(batch.x), batch.y);
    loss.backward();
    optimizer.step();
    metrics.add("loss", loss.item<double>(), static_cast<double>(batch.x.size(0)));
  }

  const double loss = metrics.reduce(*group).at("loss");  // the mean over all samples
  const bool right = net->weight.allclose(train_alone(group->size()), 0, 1e-12);
  if (group->rank() == 0) {
    std::cout << "mean loss " << loss << "; the weights " << (right ? "equal" : "DIFFER FROM")
              << " those of one process\n";
  }
  return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
