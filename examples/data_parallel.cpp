// Where does DataParallel spend its time? Trains the same network in three ways, on the same
// batches:
//   one process               the plain module, with all cores
//   DataParallel              one process, 2 replicas: the calling thread copies the model, joins
//                             the outputs, adds the gradients and updates
//   DistributedDataParallel   2 ranks: each has the model, and all_reduce averages the gradients
// The program checks that all three end with the same parameters, and prints the time of a step.
//   build/release/bin/data_parallel [WIDTH [SAMPLES [STEPS]]]
#include "peal/train/replicas/data_parallel.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <torch/torch.h>

#include "peal/init/init.h"
#include "peal/launch/spawn.h"
#include "peal/train/ddp/distributed_data_parallel.h"

#include "command_line.h"
#include "exit_code.h"

namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

constexpr std::int64_t kFeatures = 64;
constexpr std::int64_t kClasses = 10;

struct Sizes {
  std::int64_t width = 512;
  std::int64_t samples = 128;
  int steps = 20;
};

struct Batch {
  torch::Tensor x;
  torch::Tensor labels;

  Batch part(int index, int parts) const {
    return {x.chunk(parts)[static_cast<std::size_t>(index)],
            labels.chunk(parts)[static_cast<std::size_t>(index)]};
  }
};

torch::nn::Sequential make_net(const Sizes& sizes) {
  torch::manual_seed(1);
  return torch::nn::Sequential(torch::nn::Linear(kFeatures, sizes.width),
                               torch::nn::ReLU(),
                               torch::nn::Linear(sizes.width, sizes.width),
                               torch::nn::ReLU(),
                               torch::nn::Linear(sizes.width, kClasses));
}

Batch make_batch(const Sizes& sizes, int step) {
  const auto random = at::detail::createCPUGenerator(static_cast<std::uint64_t>(step));
  return {torch::randn({sizes.samples, kFeatures}, random),
          torch::randint(kClasses, {sizes.samples}, random, torch::kInt64)};
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + std::ssize(values) / 2);
  return values[values.size() / 2];
}

/// The times of each step, in milliseconds.
struct Times {
  std::vector<double> step, scatter, copy, apply, gather, backward, reduce, update;
};

struct Run {
  Times times;
  torch::Tensor parameters;
};

/// Trains `forward`, whose parameters are those of `net`. `note` is called after each step.
template <class Forward, class Note>
Run train(torch::nn::Sequential& net,
          const Sizes& sizes,
          const std::vector<Batch>& batches,
          Forward&& forward,
          Note&& note) {
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  Run run;
  for (int step = 0; step < sizes.steps; ++step) {
    const Batch& batch = batches[static_cast<std::size_t>(step)];
    const auto start = Clock::now();
    optimizer.zero_grad();
    const torch::Tensor output = forward(batch.x);
    const auto forwarded = Clock::now();
    torch::cross_entropy_loss(output, batch.labels).backward();
    const auto computed = Clock::now();
    optimizer.step();
    const auto end = Clock::now();
    run.times.step.push_back(Milliseconds(end - start).count());
    run.times.backward.push_back(Milliseconds(computed - forwarded).count());
    run.times.update.push_back(Milliseconds(end - computed).count());
    note(run.times);
  }
  std::vector<torch::Tensor> flat;
  for (const torch::Tensor& parameter : net->parameters()) {
    flat.push_back(parameter.detach().flatten());
  }
  run.parameters = torch::cat(flat);
  return run;
}

std::vector<Batch> make_batches(const Sizes& sizes) {
  std::vector<Batch> batches;
  for (int step = 0; step < sizes.steps; ++step) batches.push_back(make_batch(sizes, step));
  return batches;
}

Run train_alone(const Sizes& sizes) {
  auto net = make_net(sizes);
  return train(
      net,
      sizes,
      make_batches(sizes),
      [&](const torch::Tensor& x) { return net->forward(x); },
      [](Times&) {});
}

Run train_with_replicas(const Sizes& sizes) {
  auto net = make_net(sizes);
  peal::train::DataParallel model(net, {.devices = {torch::kCPU, torch::kCPU}});
  return train(
      net,
      sizes,
      make_batches(sizes),
      [&](const torch::Tensor& x) { return model.forward(x); },
      [&](Times& times) {
        times.scatter.push_back(Milliseconds(model.times().scatter).count());
        times.copy.push_back(Milliseconds(model.times().copy).count());
        times.apply.push_back(Milliseconds(model.times().apply).count());
        times.gather.push_back(Milliseconds(model.times().gather).count());
        times.reduce.push_back(Milliseconds(model.times().reduce).count());
      });
}

/// On one rank: its part of each batch. Returns the parameters, and at the end the time of a step.
std::vector<double> train_on_rank(const Sizes& sizes) {
  const peal::ProcessGroupPtr group = peal::init_process_group();
  auto net = make_net(sizes);
  peal::train::DistributedDataParallel model(net, group);
  std::vector<Batch> parts;
  for (const Batch& batch : make_batches(sizes)) {
    parts.push_back(batch.part(group->rank(), group->size()));
  }
  const Run run = train(
      net, sizes, parts, [&](const torch::Tensor& x) { return model.forward(x); }, [](Times&) {});
  const torch::Tensor values = run.parameters.to(torch::kFloat64);
  std::vector<double> result(values.const_data_ptr<double>(),
                             values.const_data_ptr<double>() + values.numel());
  result.push_back(median(run.times.step));
  return result;
}

void print(const std::string& what, double milliseconds) {
  std::cout << "  " << std::left << std::setw(44) << what << std::right << std::setw(9)
            << std::fixed << std::setprecision(3) << milliseconds << " ms\n";
}

void print_parts(const Times& times) {
  print("scatter the batch", median(times.scatter));
  print("copy the model to the replica", median(times.copy));
  print("forward of the replicas, in parallel", median(times.apply));
  print("gather the outputs", median(times.gather));
  print("loss and backward, on the calling thread", median(times.backward));
  print("  of it, add the gradients of the replica", median(times.reduce));
  print("update the parameters", median(times.update));
}

/// Returns the exit code.
int run(const Sizes& sizes) {
  // Ranks are forks of this process, so they come before the first tensor operation.
  const auto ranks = peal::spawn(2, [&](peal::Rank) { return train_on_rank(sizes); });
  const Run alone = train_alone(sizes);
  const Run replicas = train_with_replicas(sizes);

  std::cout << "A step with " << sizes.samples << " samples and " << alone.parameters.numel()
            << " parameters, the median of " << sizes.steps << ":\n";
  print("one process", median(alone.times.step));
  print("DistributedDataParallel on 2 ranks", ranks[0].back());
  print("DataParallel with 2 replicas", median(replicas.times.step));
  std::cout << "The parts of DataParallel's step:\n";
  print_parts(replicas.times);

  const torch::Tensor of_ranks =
      torch::tensor(std::vector<double>(ranks[0].begin(), ranks[0].end() - 1)).to(torch::kFloat32);
  const bool same = replicas.parameters.allclose(alone.parameters, 1e-3, 1e-5) &&
                    of_ranks.allclose(alone.parameters, 1e-3, 1e-5);
  std::cout << "The parameters of all three " << (same ? "agree" : "DISAGREE") << std::endl;
  return same ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Compares one process, DataParallel and DistributedDataParallel");
  Sizes sizes;
  const auto add = [&app](const char* name, auto& value, const char* what) {
    app.add_option(name, value, what)->check(is_positive())->capture_default_str();
  };
  add("width", sizes.width, "Width of the network");
  add("samples", sizes.samples, "Samples of a batch");
  add("steps", sizes.steps, "Number of steps");
  if (const auto code = parse_command_line(app, argc, argv)) return *code;
  return exit_code_of("data_parallel", [&] { return run(sizes); });
}
