#include "gpt/options.h"

#include <CLI/CLI.hpp>

#include "command_line.h"

std::optional<int> parse(int argc, char** argv, Options& options) {
  CLI::App app(
      "Trains a small GPT that predicts the next character of a text, on all ranks of the job:\n"
      "  peal run -n 2 build/release/bin/gpt --data input.txt");
  app.add_option("--data", options.data, "A text file (default: a generated text)")
      ->check(CLI::ExistingFile);
  const auto positive = [&](const char* name, std::int64_t& value, const char* what) {
    app.add_option(name, value, what)->check(is_positive())->capture_default_str();
  };
  positive("--steps", options.steps, "Number of steps");
  positive("--batch", options.batch, "Sequences for each step, over all ranks");
  positive("--context", options.context, "Characters of a sequence");
  positive("--width", options.width, "Width of the model, a multiple of --heads");
  positive("--heads", options.heads, "Attention heads");
  positive("--layers", options.layers, "Layers");
  app.add_option("--lr", options.learning_rate, "Largest learning rate")->capture_default_str();
  app.add_option("--seed", options.seed, "Seed of all random numbers")->capture_default_str();
  positive("--report-every", options.report_every, "Steps between two points of the loss curve");
  app.add_option("--report",
                 options.report,
                 "Write the loss curve to this file: lines with a step and its loss")
      ->check(is_not_empty());
  app.add_option("--checkpoints",
                 options.checkpoints,
                 "Save in this folder, and continue from its last checkpoint")
      ->check(is_not_empty());
  app.add_flag("--double", options.in_double, "Compute in float64");
  app.callback([&] {
    if (options.width % options.heads == 0) return;
    throw CLI::ValidationError("--width", "is not a multiple of --heads");
  });
  return parse_command_line(app, argc, argv);
}
