#include "mnist/options.h"

#include <CLI/CLI.hpp>

std::optional<int> parse(int argc, char** argv, Options& options) {
  CLI::App app(
      "Trains a convolutional network on handwritten digits, on as many ranks as there are:\n"
      "  peal run -n 2 build/release/bin/mnist --ddp --data DIR");
  bool ddp = false, no_dropout = false;
  app.add_flag("--ddp", ddp, "By DistributedDataParallel, instead of averaging by hand");
  app.add_option(
         "--data", options.data, "Folder of MNIST's files, plain or .gz (default: draw digits)")
      ->check(CLI::ExistingDirectory);
  app.add_option("--epochs", options.epochs, "Times through the training digits")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--steps", options.steps, "Stop after so many steps")->check(CLI::PositiveNumber);
  app.add_option("--batch", options.global_batch, "Digits in a step, over all ranks")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--lr", options.learning_rate, "Learning rate")->capture_default_str();
  app.add_option("--decay", options.decay, "The learning rate's factor after each epoch")
      ->capture_default_str();
  app.add_option("--momentum", options.momentum, "Momentum of SGD")->capture_default_str();
  app.add_option("--dropout", options.dropout, "Part of the units left out while training")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_flag("--no-dropout", no_dropout, "Without: the same on any number of ranks");
  app.add_option("--seed", options.seed, "Of everything random")->capture_default_str();
  app.add_option("--report",
                 options.report,
                 "Write a line of JSON there: loss, accuracy and samples_per_second of the last "
                 "epoch, seconds, ranks, epochs, data (mnist, mnist-t10k or generated)");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  if (ddp) options.method = Method::kDistributedDataParallel;
  if (no_dropout) options.dropout = 0;
  return std::nullopt;
}
