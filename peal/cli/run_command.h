// `peal run`, also as `horovodrun`: converts arguments to a launch on this machine.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "peal/cli/horovod_options.h"
#include "peal/cli/run_job.h"
#include "peal/cli/time_limits.h"
#include "peal/cli/torchrun_options.h"
#include "peal/launch/options.h"

namespace peal::cli {

class RunCommand final {
 public:
  /// Adds `run` to the program. `app` must outlive this object. `labels`: unless --no-prefix is
  /// given. `wording`: how the user has called the program.
  RunCommand(CLI::App& app, launch::Labels labels, const launch::Wording& wording);
  RunCommand(const RunCommand&) = delete;

  /// Removes the command from `arguments` (those after "run") before they are parsed. The command
  /// begins with the first argument that is neither an option nor an option's value, and takes all
  /// that follow, options included. Spells the rest as declared (leading_options.h).
  /// Errors: usage.
  void take_command(std::vector<std::string>& arguments);
  bool was_asked_for() const { return run_->parsed(); }
  /// Whether the user only wants to see the table of check_build.h.
  bool asks_for_build() const { return check_build_->count() > 0; }
  /// Errors: usage.
  RunRequest request() const;

 private:
  void add_options();
  void add_engine_options();
  /// -n, or all slots of `hosts`, or PET_NPROC_PER_NODE.
  int count_ranks(const std::vector<launch::HostSlots>& hosts) const;
  std::vector<launch::Assignment> variables(const HorovodSettings& settings) const;
  bool take_allocation(const HorovodSettings& settings,
                       const TorchrunValues& torchrun,
                       const std::optional<launch::ElasticOptions>& elastic,
                       launch::LaunchOptions& options) const;
  void take_engine(launch::agents::Engine engine,
                   const HorovodSettings& settings,
                   launch::LaunchOptions& options,
                   RunRequest& request) const;
  void take_container(bool is_elastic, RunRequest& request) const;

  CLI::App* run_;  // CLI11 owns it
  const CLI::Option* check_build_ = nullptr;
  std::optional<HorovodOptions> horovod_;
  std::optional<TorchrunOptions> torchrun_;
  launch::LaunchOptions options_;
  std::vector<std::string> command_;
  std::vector<std::string> counts_;  // exactly one, if the arguments are right
  std::vector<std::string> variables_;
  std::string faults_;  // the path of a file
  std::string binding_ = "cores";
  TimeLimits limits_;
  std::string launcher_;   // empty: peal chooses
  std::string peal_path_;  // on other hosts
  std::string image_;      // empty: the ranks run in no container
  std::string container_engine_;
  std::vector<std::string> container_options_;
};

}  // namespace peal::cli
