// Accumulates the gradients of several batches for each step, in two ways (from build/release/bin):
//   peal run -n 2 ./accumulation
// All batches but the last run inside no_sync(), so only the last backward pass communicates. The
// program compares the result with one process that has all samples in one batch.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <vector>

#include <CLI/CLI.hpp>
#include <torch/torch.h>

#include "peal/init/init.h"
#include "peal/train/ddp/distributed_data_parallel.h"

#include "command_line.h"

namespace {

namespace train = peal::train;
using torch::Tensor;

constexpr int kBatches = 4;  // for each step
constexpr std::int64_t kBatchSize = 8;

torch::nn::Linear make_model() {
  torch::manual_seed(1);
  return torch::nn::Linear(torch::nn::LinearOptions(16, 1));
}

/// The batches of a rank.
Tensor samples_of(int rank) {
  const auto random = at::detail::createCPUGenerator(static_cast<std::uint64_t>(rank + 10));
  return torch::randn({kBatches, kBatchSize, 16}, random);
}

Tensor loss_of(const Tensor& output) { return (output - 1).square().mean(); }

Tensor gradient_of_one_process(int ranks) {
  torch::nn::Linear model = make_model();
  std::vector<Tensor> all;
  for (int rank = 0; rank < ranks; ++rank) all.push_back(samples_of(rank).flatten(0, 1));
  loss_of(model->forward(torch::cat(all))).backward();
  return model->weight.grad();
}

/// Average::kMean, as in torch: the loss is divided by the number of batches.
Tensor by_mean(const peal::ProcessGroupPtr& group, const Tensor& batches) {
  const torch::nn::Linear net = make_model();
  train::DistributedDataParallel model(net, group);
  {
    const auto no_sync = model.no_sync();
    for (int i = 0; i + 1 < kBatches; ++i) {
      (loss_of(model.forward(batches[i])) / kBatches).backward();
    }
  }
  (loss_of(model.forward(batches[kBatches - 1])) / kBatches).backward();
  return net->weight.grad();
}

/// Average::kBySamples: each batch counts with its samples, so the loss is not divided.
Tensor by_samples(const peal::ProcessGroupPtr& group, const Tensor& batches) {
  const torch::nn::Linear net = make_model();
  train::DistributedDataParallel model(net, group, {.average = train::Average::kBySamples});
  {
    const auto no_sync = model.no_sync();
    for (int i = 0; i + 1 < kBatches; ++i) loss_of(model.forward(batches[i])).backward();
  }
  loss_of(model.forward(batches[kBatches - 1])).backward();
  return net->weight.grad();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Accumulates gradients on all ranks of the job, and compares them with one process");
  if (const auto code = parse_command_line(app, argc, argv)) return *code;
  const peal::ProcessGroupPtr group = peal::init_process_group();
  const Tensor batches = samples_of(group->rank());
  const Tensor expected = gradient_of_one_process(group->size());
  const bool right = by_mean(group, batches).allclose(expected, 1e-4, 1e-6) &&
                     by_samples(group, batches).allclose(expected, 1e-4, 1e-6);
  if (group->rank() == 0) {
    std::cout << kBatches << " batches of " << kBatchSize << " on each of " << group->size()
              << " ranks: the gradient " << (right ? "equals" : "DIFFERS FROM")
              << " that of one process\n";
  }
  return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
