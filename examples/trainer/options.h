// The command line options of the trainer example.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

struct Options {
  std::vector<int> gpus;       // one for each process; empty: the CPU
  int processes = 2;           // without `peal run`
  std::filesystem::path data;  // the folder of MNIST's files; empty: draw digits
  std::int64_t epochs = 3;
  std::size_t batch = 64;  // on each rank
  int accumulate = 1;
  std::filesystem::path checkpoints;  // their folder; empty: none
  bool bf16 = false;
  bool shares_state = false;
};

/// Fills `options`. After --help or an error, returns the exit code instead.
std::optional<int> parse(int argc, char** argv, Options& options);
