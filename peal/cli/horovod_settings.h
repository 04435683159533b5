// What the options of horovodrun mean for a launch. Pure, but for the files that the options name.
// Called by `peal run`.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "peal/cli/horovod_table.h"
#include "peal/config/environment.h"
#include "peal/launch/attempts.h"
#include "peal/launch/elastic/elastic_options.h"
#include "peal/launch/host_list.h"
#include "peal/launch/options.h"

namespace peal::cli {

/// An option with the values that the command line or a config file gives it.
struct GivenOption {
  const HorovodOption* option = nullptr;
  std::vector<std::string> values;  // not checked; of a switch "true" or "false"
  std::string source = {};          // for errors: the place in a config file; empty: the option
  friend bool operator==(const GivenOption&, const GivenOption&) = default;
};

/// The content of a config file.
struct HorovodConfig {
  std::vector<GivenOption> options;
  std::vector<std::string> unknown;  // places that no option has, such as "params.speed"
  friend bool operator==(const HorovodConfig&, const HorovodConfig&) = default;
};

/// Returns the content of the file with this path.
using ReadConfig = std::function<HorovodConfig(const std::string& path)>;

/// The settings in effect.
struct HorovodSettings {
  std::map<std::string_view, std::vector<std::string>> values;  // accepted, by the option's name
  std::vector<std::string> ignored;  // sentences about unknown places in the config files

  bool has(std::string_view name) const { return values.contains(name); }
  bool is_on(std::string_view name) const;
  /// The first value; "" if the option is not given.
  std::string text(std::string_view name) const;
  std::optional<int> number(std::string_view name) const;
};

/// The last of equal options counts. A --config-file counts like its options at its place, so it
/// overrides earlier options, and later options override it. Names of network interfaces add up.
/// Errors: usage.
HorovodSettings settle(std::span<const GivenOption> given, const ReadConfig& read);

/// The variables for the ranks.
std::vector<launch::Assignment> variables_of(const HorovodSettings& settings);

/// Sets the log files and the timestamps.
/// Errors: usage if `options` has log files.
void set_output(const HorovodSettings& settings, launch::LaunchOptions& options);

/// Sets how long a job that starts again waits for hosts, and for how long it avoids a host after a
/// failure. Errors: usage.
void set_limits(const HorovodSettings& settings,
                const Environment& environment,
                launch::AttemptRules& rules);

/// A sentence about each option that has no effect; with --verbose, also about each host of the
/// job.
std::vector<std::string> notices_of(const HorovodSettings& settings,
                                    const launch::LaunchOptions& options,
                                    const launch::AttemptRules& attempts = {});

/// The hosts of -H or of the hostfile; empty if the user names none.
/// Errors: usage, also for two lists of hosts.
std::vector<launch::HostSlots> hosts_of(const HorovodSettings& settings);

/// Nothing if the job is not elastic. `ranks`: the number in -n, if it is given. `environment` may
/// have HOROVOD_ELASTIC_TIMEOUT. `wording` is for errors.
/// Errors: usage.
std::optional<launch::ElasticOptions> elastic_of(const HorovodSettings& settings,
                                                 std::optional<int> ranks,
                                                 const Environment& environment,
                                                 const launch::Wording& wording = {});

/// Rejects --mpi and --jsrun. Errors: usage, which says what to do.
void check_controller(const HorovodSettings& settings);

}  // namespace peal::cli
