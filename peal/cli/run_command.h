// `peal run`: from arguments to a launch on this machine.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "peal/launch/options.h"

namespace peal::cli {

class RunCommand final {
 public:
  /// Adds `run` to the program. `app` must outlive this.
  explicit RunCommand(CLI::App& app);
  RunCommand(const RunCommand&) = delete;

  /// What follows the first argument that is neither an option nor an option's value belongs to the
  /// command, options included: takes it out of `arguments` (those after "run"), before they are
  /// parsed. `-np`, `--nproc_per_node` and `-n=2` become `-n` and `-n2`.
  void take_command(std::vector<std::string>& arguments);
  bool was_asked_for() const { return run_->parsed(); }
  /// What the arguments asked for. Throws Error(usage).
  launch::LaunchOptions options() const;

 private:
  CLI::App* run_;  // CLI11 owns it
  launch::LaunchOptions options_;
  std::vector<std::string> command_;
  std::vector<std::string> counts_;  // one, if all is well
  std::vector<std::string> variables_;
  std::string faults_;  // the path of a file
  std::string binding_ = "cores";
  double grace_seconds_ = 5;
};

/// Runs it, writes the ranks' output and the report to stdout and stderr, and returns the exit
/// code.
int run(const launch::LaunchOptions& options);

}  // namespace peal::cli
