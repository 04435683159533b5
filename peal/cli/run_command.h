// `peal run`: converts arguments to a launch on this machine.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "peal/launch/options.h"

namespace peal::cli {

class RunCommand final {
 public:
  /// Adds `run` to the program. `app` must outlive this object.
  explicit RunCommand(CLI::App& app);
  RunCommand(const RunCommand&) = delete;

  /// Removes the command from `arguments` (those after "run") before they are parsed. The command
  /// begins with the first argument that is neither an option nor an option's value, and takes all
  /// that follow, options included. In the rest, `-np`, `--nproc_per_node` and `-n=2` become `-n`
  /// and `-n2`.
  void take_command(std::vector<std::string>& arguments);
  bool was_asked_for() const { return run_->parsed(); }
  /// The options of the arguments. Errors: usage.
  launch::LaunchOptions options() const;

 private:
  CLI::App* run_;  // CLI11 owns it
  launch::LaunchOptions options_;
  std::vector<std::string> command_;
  std::vector<std::string> counts_;  // exactly one, if the arguments are right
  std::vector<std::string> variables_;
  std::string faults_;  // the path of a file
  std::string binding_ = "cores";
  double grace_seconds_ = 5;
};

/// Runs the launch, writes the ranks' output and the report to stdout and stderr, and returns the
/// exit code.
int run(const launch::LaunchOptions& options);

}  // namespace peal::cli
