// Measures training with Horovod's API on random data, as Horovod's synthetic benchmark does (from
// build/release/bin):
//   horovodrun -np 2 ./horovod_benchmark
// Prints samples in a second, of each rank and of all ranks. `--help` lists all options.
#include <chrono>
#include <cmath>
#include <cstdint>
#include <iomanip>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <torch/torch.h>

#include "peal/horovod.h"

#include "command_line.h"
#include "exit_code.h"

namespace {

namespace hvd = peal::hvd;

struct Options {
  int batch = 8;
  int warmup_batches = 10;
  int batches = 10;
  int rounds = 10;
  bool bf16 = false;
  bool adasum = false;
};

std::optional<int> parse(int argc, char** argv, Options& options) {
  CLI::App app(
      "Measures training with Horovod's API on random data:\n"
      "  horovodrun -np 2 build/release/bin/horovod_benchmark");
  app.add_option("--batch-size", options.batch, "Samples of a batch on each rank")
      ->check(is_positive())
      ->capture_default_str();
  app.add_option("--num-warmup-batches", options.warmup_batches, "Batches that do not count")
      ->check(is_positive())
      ->capture_default_str();
  app.add_option("--num-batches-per-iter", options.batches, "Batches of a measurement")
      ->check(is_positive())
      ->capture_default_str();
  app.add_option("--num-iters", options.rounds, "Number of measurements")
      ->check(is_positive())
      ->capture_default_str();
  app.add_flag("--bf16-allreduce", options.bf16, "Send gradients as bfloat16");
  app.add_flag("--use-adasum", options.adasum, "Combine the changes of the ranks by Adasum");
  return parse_command_line(app, argc, argv);
}

torch::nn::Sequential make_model() {
  namespace nn = torch::nn;
  return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(1, 32, 3)),
                        nn::ReLU(),
                        nn::Conv2d(nn::Conv2dOptions(32, 64, 3)),
                        nn::ReLU(),
                        nn::MaxPool2d(2),
                        nn::Flatten(),
                        nn::Linear(64 * 12 * 12, 128),
                        nn::ReLU(),
                        nn::Linear(128, 10));
}

/// The mean, and the half-width of the interval that has 95% of the values.
std::pair<double, double> summary(const std::vector<double>& values) {
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  const double mean = sum / static_cast<double>(values.size());
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {mean, 1.96 * std::sqrt(squares / static_cast<double>(values.size()))};
}

int run(const Options& options) {
  hvd::init();
  torch::set_num_threads(1);
  torch::manual_seed(1);
  torch::nn::Sequential model = make_model();
  hvd::DistributedOptions how;
  if (options.bf16) how.compression = hvd::Compression::bf16();
  if (options.adasum) how.op = hvd::Adasum;
  const double scale = options.adasum ? 1 : hvd::size();
  hvd::DistributedOptimizer optimizer(
      torch::optim::SGD(model->parameters(), 0.01 * scale), model->named_parameters(), how);
  hvd::broadcast_parameters(*model, /*root_rank=*/0);
  hvd::broadcast_optimizer_state(optimizer, /*root_rank=*/0);

  const torch::Tensor data = torch::randn({options.batch, 1, 28, 28});
  const torch::Tensor target = torch::randint(10, {options.batch}, torch::kInt64);
  const auto train = [&](int batches) {
    for (int i = 0; i < batches; ++i) {
      optimizer.zero_grad();
      torch::cross_entropy_loss(model->forward(data), target).backward();
      optimizer.step();
    }
  };
  const auto say = [](const auto&... parts) {
    if (hvd::rank() == 0) (std::cout << ... << parts) << std::endl;
  };

  std::cout << std::fixed << std::setprecision(1);
  say("Model: a small convolutional network");
  say("Batch size: ", options.batch);
  say("Number of ranks: ", hvd::size());
  train(options.warmup_batches);
  std::vector<double> rates;
  for (int round = 0; round < options.rounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    train(options.batches);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    rates.push_back(options.batch * options.batches / time.count());
    say("Iter #", round, ": ", rates.back(), " samples/sec per rank");
  }
  const auto [mean, width] = summary(rates);
  say("Samples/sec per rank: ", mean, " +-", width);
  say("Total samples/sec on ",
      hvd::size(),
      " rank(s): ",
      hvd::size() * mean,
      " +-",
      hvd::size() * width);
  hvd::shutdown();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (const auto code = parse(argc, argv, options)) return *code;
  return exit_code_of("horovod_benchmark", [&] { return run(options); });
}
