// `peal bench`: from arguments to a benchmark, its table and its files.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "peal/bench/bench.h"

namespace peal::cli {

/// What `peal bench` was asked for.
struct BenchRequest {
  bench::BenchOptions options;
  std::string json_path;  // empty: none
  std::string plot_path;
  std::string baseline_path;
  double tolerance = 0.5;
};

class BenchCommand final {
 public:
  /// Adds `bench` to the program. `app` must outlive this.
  explicit BenchCommand(CLI::App& app);
  BenchCommand(const BenchCommand&) = delete;

  bool was_asked_for() const { return bench_->parsed(); }
  /// What the arguments asked for. Throws Error(usage).
  BenchRequest request() const;

 private:
  bench::HostOptions parse_hosts() const;

  CLI::App* bench_;  // CLI11 owns it
  std::vector<std::string> ops_;
  std::string ranks_ = "2";
  std::string sizes_ = "4:64M";
  std::string dtypes_ = "f32";
  std::string peers_;
  std::string memory_ = "registered,foreign";
  std::string transport_ = "auto";
  std::string json_path_, plot_path_, baseline_path_;
  double tolerance_ = 0.5;
  std::string rate_;
  int hosts_ = 0;
  int ranks_per_host_ = 1;
  int rounds_ = 5;
  double seconds_ = 0.1;
  bool untouched_ = false;
  bool in_place_ = false;
};

/// Measures, writes the table to stdout, what is left out and what went wrong to stderr, and the
/// files. Returns the exit code: 1 when a result was wrong, a worker died, or a ratio is worse than
/// the baseline allows.
int run(const BenchRequest& request);

}  // namespace peal::cli
