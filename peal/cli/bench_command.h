// `peal bench`: parses its arguments.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "peal/cli/bench_report.h"

namespace peal::cli {

class BenchCommand final {
 public:
  /// Adds `bench` to the program. `app` must outlive this object.
  explicit BenchCommand(CLI::App& app);
  BenchCommand(const BenchCommand&) = delete;

  bool was_asked_for() const { return bench_->parsed(); }
  /// The request of the arguments. Errors: usage.
  BenchRequest request() const;

 private:
  void add_what();
  void add_how();
  void add_hosts();
  void add_files();
  bench::HostOptions parse_hosts() const;

  CLI::App* bench_;  // CLI11 owns it
  std::vector<std::string> ops_;
  std::string ranks_ = "2";
  std::string sizes_ = "4:64M";
  std::string dtypes_ = "f32";
  std::string peers_;
  std::string memory_ = "registered,foreign";
  std::string transport_ = "auto";
  std::string tolerance_ = "0.5";
  std::string rate_, congestion_, json_path_, baseline_path_, tune_path_;
  double seconds_ = 0.1;
  int rounds_ = 5;
  int hosts_ = 0;
  int ranks_per_host_ = 1;
  bool untouched_ = false;
  bool in_place_ = false;
};

}  // namespace peal::cli
