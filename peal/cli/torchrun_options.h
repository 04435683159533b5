// The options of torchrun on the command line of `peal run`, and what they mean for a launch.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "peal/base/count_range.h"
#include "peal/launch/options.h"
#include "peal/rendezvous/read_node_place.h"

namespace peal::cli {

/// The options that were given: by the option's name, its values. A switch has the value "".
using TorchrunValues = std::map<std::string_view, std::vector<std::string>>;

class TorchrunOptions final {
 public:
  /// Declares the options of the table. `command` must outlive this object.
  explicit TorchrunOptions(CLI::App& command);
  TorchrunOptions(const TorchrunOptions&) = delete;

  TorchrunValues given() const;

 private:
  std::map<const CLI::Option*, std::string_view> declared_;
};

/// MIN and MAX of --nnodes MIN:MAX: the hosts of an elastic job. Nothing for a fixed number.
/// Errors: usage.
std::optional<CountRange> node_range_of(const TorchrunValues& given);

/// The options about nodes. A range of --nnodes does not count. Errors: usage.
rendezvous::NodeOptions node_options_of(const TorchrunValues& given);

/// The words that start the ranks: `command`, changed by -m and --no-python. Errors: usage.
std::vector<std::string> command_of(const TorchrunValues& given,
                                    const std::vector<std::string>& command);

/// Sets the outputs that are not shown. `options.log_directory` and `options.ranks` must be set.
/// Errors: usage, also in an elastic job, whose workers have no fixed local ranks.
void hide_output(const TorchrunValues& given, bool is_elastic, launch::LaunchOptions& options);

/// How often the job may start again. Errors: usage, also for one of several nodes, because all
/// nodes would have to start again together.
int restarts_of(const TorchrunValues& given, const rendezvous::NodePlace& node);

/// A sentence about each option that has no effect.
std::vector<std::string> notices_of(const TorchrunValues& given);

}  // namespace peal::cli
