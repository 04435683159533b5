// Trains on handwritten digits with Horovod's API, as the first Horovod program of a Python user,
// in C++ (from build/release/bin):
//   horovodrun -np 2 ./horovod_mnist     or     peal run -n 2 ./horovod_mnist
// `--data DIR` reads MNIST's files; without it the digits are drawn. `--help` lists all options.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <torch/torch.h>

#include "peal/horovod.h"
#include "peal/train/samplers/distributed_sampler.h"
#include "peal/train/trainer/progress_bar.h"

#include "command_line.h"
#include "exit_code.h"
#include "mnist/digits.h"
#include "mnist/images.h"
#include "mnist/mnist_files.h"
#include "mnist/net.h"
#include "mnist/progress.h"

namespace {

namespace hvd = peal::hvd;

struct Options {
  std::string data;
  int epochs = 2;
  int batch = 128;
  double learning_rate = 1e-3;
};

std::optional<int> parse(int argc, char** argv, Options& options) {
  CLI::App app(
      "Trains a network on handwritten digits with Horovod's API:\n"
      "  horovodrun -np 2 build/release/bin/horovod_mnist");
  app.add_option(
         "--data", options.data, "Folder with MNIST's files, plain or .gz (default: draw digits)")
      ->check(CLI::ExistingDirectory);
  app.add_option("--epochs", options.epochs, "Number of passes over the digits")
      ->check(is_positive())
      ->capture_default_str();
  app.add_option("--batch", options.batch, "Digits of a batch on each rank")
      ->check(is_positive())
      ->capture_default_str();
  app.add_option("--learning-rate", options.learning_rate, "Learning rate of Adam")
      ->capture_default_str();
  return parse_command_line(app, argc, argv);
}

/// The part of the test digits that the model names right. Each rank takes every n-th digit.
double accuracy_of(Net& model, const mnist::ImageDataset& tests) {
  const torch::NoGradGuard no_grad;
  model->eval();
  const torch::Tensor mine = torch::arange(hvd::rank(), tests.labels().size(0), hvd::size());
  const torch::Tensor predicted = model->forward(tests.images().index_select(0, mine)).argmax(1);
  const torch::Tensor right = predicted.eq(tests.labels().index_select(0, mine)).sum();
  const torch::Tensor all = hvd::allreduce(right, {.name = "right", .op = hvd::Sum});
  return all.item<double>() / static_cast<double>(tests.labels().size(0));
}

int run(const Options& options) {
  hvd::init();

  const mnist::DigitSets digits =
      options.data.empty() ? mnist::generated_digits(1) : mnist::read_mnist(options.data);
  const mnist::ImageDataset pictures(digits.train), tests(digits.test);
  peal::train::DistributedSampler sampler(*pictures.size(), hvd::rank(), hvd::size());
  const auto loader =
      torch::data::make_data_loader(pictures, sampler, static_cast<std::size_t>(options.batch));

  Net model(/*dropout_rate=*/0.25);
  hvd::DistributedOptimizer optimizer(
      torch::optim::Adam(model->parameters(), torch::optim::AdamOptions(options.learning_rate)),
      model->named_parameters());
  hvd::broadcast_parameters(*model, /*root_rank=*/0);
  hvd::broadcast_optimizer_state(optimizer, /*root_rank=*/0);

  Progress progress(hvd::rank() == 0 ? Progress::Voice::kSpeaking : Progress::Voice::kSilent,
                    peal::train::ProgressBar::terminal_columns(),
                    options.epochs,
                    std::int64_t{options.batch} * hvd::size());
  progress.say("Digits: " + digits.source);
  const auto steps =
      static_cast<std::int64_t>(sampler.batches(static_cast<std::size_t>(options.batch)));
  double accuracy = 0;
  for (int epoch = 1; epoch <= options.epochs; ++epoch) {
    torch::Tensor sum = torch::zeros({}, torch::kDouble);
    model->train();
    progress.begin_epoch(epoch, steps);
    for (const auto& batch : *loader) {  // each loop is the next epoch of the sampler
      optimizer.zero_grad();
      const torch::Tensor logits = model->forward(batch.data);
      const torch::Tensor loss = torch::cross_entropy_loss(logits, batch.target);
      loss.backward();
      optimizer.step();
      sum += loss.detach();
      progress.step(loss.item<double>());
    }
    const torch::Tensor mean = hvd::allreduce(sum / steps, {.name = "loss"});  // over all ranks
    accuracy = accuracy_of(model, tests);
    progress.end_epoch(mean.item<double>(), accuracy);
  }
  hvd::shutdown();
  return accuracy > 0.3 ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (const auto code = parse(argc, argv, options)) return *code;
  return exit_code_of("horovod_mnist", [&] { return run(options); });
}
