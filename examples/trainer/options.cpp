#include "trainer/options.h"

#include <CLI/CLI.hpp>

#include "command_line.h"

std::optional<int> parse(int argc, char** argv, Options& options) {
  CLI::App app(
      "Trains a convolutional network on handwritten digits with peal::train::Trainer. Starts its\n"
      "processes itself, or runs as a rank of `peal run`:\n"
      "  build/release/bin/trainer --processes 2");
  app.add_option("--gpus",
                 options.gpus,
                 "Numbers of the GPUs, one for each process (default: train on the CPU)");
  app.add_option("--processes", options.processes, "Number of processes on the CPU")
      ->check(is_positive())
      ->capture_default_str();
  app.add_option(
         "--data", options.data, "Folder with MNIST's files, plain or .gz (default: draw digits)")
      ->check(CLI::ExistingDirectory);
  app.add_option("--epochs", options.epochs, "Number of passes over the digits")
      ->check(is_positive())
      ->capture_default_str();
  app.add_option("--batch", options.batch, "Digits of a batch on each rank")
      ->check(is_positive())
      ->capture_default_str();
  app.add_option("--accumulate", options.accumulate, "Batches for each step")
      ->check(is_positive())
      ->capture_default_str();
  app.add_option("--checkpoints",
                 options.checkpoints,
                 "Save in this folder, and continue from its last checkpoint")
      ->check(is_not_empty());
  app.add_flag("--bf16", options.bf16, "Compute the forward pass in bfloat16");
  app.add_flag("--zero", options.shares_state, "Divide the optimizer's state among the ranks");
  return parse_command_line(app, argc, argv);
}
