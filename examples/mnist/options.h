// The command line options of the mnist example.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

enum class Method { kByHand, kDistributedDataParallel };

struct Options {
  Method method = Method::kByHand;
  std::filesystem::path data;  // the folder of MNIST's files; empty: draw digits
  int epochs = 5;
  std::optional<int> steps;  // stop after this number, for any number of epochs
  std::int64_t global_batch = 128;
  double learning_rate = 0.05;
  double decay = 0.6;
  double momentum = 0.9;
  double dropout = 0.25;
  std::uint64_t seed = 1234;
  std::filesystem::path report;  // the file for the results; empty: no file
};

/// Fills `options`. After --help or an error, returns the exit code instead.
std::optional<int> parse(int argc, char** argv, Options& options);
