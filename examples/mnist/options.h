// What the mnist example can be told on its command line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

enum class Method { kByHand, kDistributedDataParallel };

struct Options {
  Method method = Method::kByHand;
  std::filesystem::path data;  // a folder with MNIST's files; empty: draw digits
  int epochs = 5;
  std::optional<int> steps;  // stop after so many, whatever the epochs
  std::int64_t global_batch = 128;
  double learning_rate = 0.05;
  double decay = 0.6;
  double momentum = 0.9;
  double dropout = 0.25;
  std::uint64_t seed = 1234;
  std::filesystem::path report;  // where to write what came out; empty: nowhere
};

/// Fills `options`, or returns the code with which to exit at once (after --help, or a mistake).
std::optional<int> parse(int argc, char** argv, Options& options);
