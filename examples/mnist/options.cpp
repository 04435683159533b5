#include "mnist/options.h"

#include <CLI/CLI.hpp>

#include "command_line.h"

std::optional<int> parse(int argc, char** argv, Options& options) {
  CLI::App app(
      "Trains a convolutional network on handwritten digits, on all ranks of the job:\n"
      "  peal run -n 2 build/release/bin/mnist --ddp --data DIR");
  bool ddp = false, no_dropout = false;
  app.add_flag("--ddp", ddp, "Use DistributedDataParallel instead of averaging gradients by hand");
  app.add_option(
         "--data", options.data, "Folder with MNIST's files, plain or .gz (default: draw digits)")
      ->check(CLI::ExistingDirectory);
  app.add_option("--epochs", options.epochs, "Number of passes over the training digits")
      ->check(is_positive())
      ->capture_default_str();
  app.add_option("--steps", options.steps, "Stop after this number of steps")->check(is_positive());
  app.add_option("--batch", options.global_batch, "Digits for each step, over all ranks")
      ->check(is_positive())
      ->capture_default_str();
  app.add_option("--lr", options.learning_rate, "Learning rate")->capture_default_str();
  app.add_option("--decay", options.decay, "Factor of the learning rate after each epoch")
      ->capture_default_str();
  app.add_option("--momentum", options.momentum, "Momentum of SGD")->capture_default_str();
  app.add_option("--dropout", options.dropout, "Fraction of the units that training leaves out")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_flag("--no-dropout", no_dropout, "No dropout: the same result on any number of ranks");
  app.add_option("--seed", options.seed, "Seed of all random numbers")->capture_default_str();
  app.add_option(
         "--report",
         options.report,
         "Write a line of JSON to this file: loss, accuracy and samples_per_second of the last "
         "epoch, seconds, ranks, epochs, data (mnist, mnist-t10k or generated)")
      ->check(is_not_empty());
  if (const auto code = parse_command_line(app, argc, argv)) return code;
  if (ddp) options.method = Method::kDistributedDataParallel;
  if (no_dropout) options.dropout = 0;
  return std::nullopt;
}
