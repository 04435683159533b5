// The command line options of the gpt example.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

struct Options {
  std::filesystem::path data;  // a text file; empty: a generated text
  std::int64_t steps = 200;
  std::int64_t batch = 16;  // sequences for each step, over all ranks
  std::int64_t context = 128;
  std::int64_t width = 384;
  std::int64_t heads = 6;
  std::int64_t layers = 6;
  double learning_rate = 1e-3;
  std::uint64_t seed = 1;
  std::int64_t report_every = 10;     // steps
  std::filesystem::path report;       // the file for the loss curve; empty: no file
  std::filesystem::path checkpoints;  // their folder; empty: none
  bool in_double = false;             // computes in float64, so that all machines agree
};

/// Fills `options`. After --help or an error, returns the exit code instead.
std::optional<int> parse(int argc, char** argv, Options& options);
