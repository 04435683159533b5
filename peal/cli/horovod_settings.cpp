#include "peal/cli/horovod_settings.h"

#include <algorithm>
#include <array>
#include <chrono>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/parse_number.h"
#include "peal/base/printable.h"
#include "peal/cli/ranks_text.h"
#include "peal/launch/cores.h"
#include "peal/system/text_file.h"

namespace peal::cli {
namespace {

constexpr Bytes kLongestHostfile = 1_MiB;
constexpr const char* kInterfaces = "--network-interfaces";
constexpr const char* kScript = "--host-discovery-script";

std::vector<std::string> accepted_values(const GivenOption& given) {
  const std::string_view source = given.source.empty() ? given.option->name : given.source;
  std::vector<std::string> values;
  for (const std::string& text : given.values) {
    values.push_back(accepted(*given.option, text, source));
  }
  return values;
}

void put(const GivenOption& given, HorovodSettings& settings) {
  std::vector<std::string> values = accepted_values(given);
  std::vector<std::string>& own = settings.values[given.option->name];
  if (given.option->name == kInterfaces && !own.empty()) {
    own.front() += "," + values.front();
  } else {
    own = std::move(values);
  }
}

std::vector<launch::HostSlots> hosts_in_list(const std::string& text) {
  try {
    return launch::parse_host_list(text);
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("-H: {}", error.message()));
  }
}

std::vector<launch::HostSlots> hosts_in_file(const std::string& path) {
  try {
    return launch::parse_hostfile(read_text_file(path, kLongestHostfile));
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("--hostfile {}: {}", path, error.message()));
  }
}

Timeout elastic_timeout(const HorovodSettings& settings, const Environment& environment) {
  constexpr const char* kVariable = "HOROVOD_ELASTIC_TIMEOUT";
  const HorovodOption& option = *horovod_option("--elastic-timeout");
  std::optional<int> seconds = settings.number(option.name);
  if (const auto text = environment(kVariable); text && !seconds) {
    seconds = try_parse_number<int>(accepted(option, *text, kVariable));
  }
  return std::chrono::seconds(seconds.value_or(600));
}

/// The options that have no effect in a job that is not elastic.
constexpr std::array kElasticDetails = {"--max-np",
                                        "--slots-per-host",
                                        "--elastic-timeout",
                                        "--reset-limit",
                                        "--blacklist-cooldown-range"};

/// Of these, the options that also count for a job that may start again.
constexpr std::array<std::string_view, 2> kRestartDetails = {"--elastic-timeout",
                                                             "--blacklist-cooldown-range"};

bool is_elastic(const HorovodSettings& settings) {
  return settings.has(kScript) || settings.has("--min-np");
}

launch::Cooldown cooldown_of(const std::vector<std::string>& values) {
  const auto seconds = [](const std::string& text) {
    return std::chrono::seconds(try_parse_number<int>(text).value_or(0));
  };
  const launch::Cooldown cooldown{seconds(values.at(0)), seconds(values.at(1))};
  if (cooldown.low <= cooldown.high) return cooldown;
  throw Error(ErrorKind::kUsage,
              fmt::format("--blacklist-cooldown-range {} {}: put the smaller number first",
                          values.at(0),
                          values.at(1)));
}

void check_order(std::string_view smaller, int small, std::string_view larger, int large) {
  if (small <= large) return;
  throw Error(ErrorKind::kUsage,
              fmt::format("{0} {1} is more than {2} {3}: give a smaller {0} or a larger {2}",
                          smaller,
                          small,
                          larger,
                          large));
}

void add_places(const launch::LaunchOptions& options, std::vector<std::string>& sentences) {
  for (const launch::HostBlock& block : launch::plan_hosts(options.hosts, options.ranks).blocks) {
    sentences.push_back(
        fmt::format("host {} has {}", block.name, ranks_text(block.first, block.ranks)));
  }
  if (!options.hosts.empty()) return;
  const auto cores = static_cast<int>(launch::usable_cores().size());
  if (options.ranks <= cores) return;
  sentences.push_back(
      fmt::format("{} ranks share {} core{}: more ranks than cores make each slower",
                  options.ranks,
                  cores,
                  cores == 1 ? "" : "s"));
}

}  // namespace

bool HorovodSettings::is_on(std::string_view name) const { return text(name) == "1"; }

std::string HorovodSettings::text(std::string_view name) const {
  const auto found = values.find(name);
  return found == values.end() || found->second.empty() ? "" : found->second.front();
}

std::optional<int> HorovodSettings::number(std::string_view name) const {
  return has(name) ? try_parse_number<int>(text(name)) : std::nullopt;
}

HorovodSettings settle(std::span<const GivenOption> given, const ReadConfig& read) {
  HorovodSettings settings;
  for (const GivenOption& option : given) {
    put(option, settings);
    if (option.option->name != "--config-file") continue;
    const std::string path = settings.text(option.option->name);
    const HorovodConfig config = read(path);
    try {
      for (const GivenOption& in_file : config.options) put(in_file, settings);
    } catch (const Error& error) {
      throw Error(error.kind(),
                  fmt::format("--config-file {}: {}", printable(path), error.message()));
    }
    for (const std::string& place : config.unknown) {
      settings.ignored.push_back(fmt::format("--config-file {}: {} is not known and has no effect",
                                             printable(path),
                                             printable(place)));
    }
  }
  return settings;
}

std::vector<launch::Assignment> variables_of(const HorovodSettings& settings) {
  std::vector<launch::Assignment> variables;
  for (const HorovodOption& option : horovod_options()) {
    if (option.variable.empty() || !settings.has(option.name)) continue;
    variables.push_back(
        {std::string(option.variable), variable_value(option, settings.text(option.name))});
  }
  if (settings.has(kInterfaces))
    variables.push_back({"PEAL_INTERFACE", settings.text(kInterfaces)});
  return variables;
}

void set_output(const HorovodSettings& settings, launch::LaunchOptions& options) {
  if (settings.is_on("--prefix-timestamp")) options.timestamps = launch::Timestamps::kOn;
  if (!settings.has("--output-filename")) return;
  if (!options.log_directory.empty()) {
    throw Error(
        ErrorKind::kUsage,
        "--log-dir and --output-filename both name a folder of logs: give only one of them");
  }
  options.log_directory = settings.text("--output-filename");
  options.log_names = launch::LogNames::kFolders;
}

void set_limits(const HorovodSettings& settings,
                const Environment& environment,
                launch::AttemptRules& rules) {
  rules.host_timeout = elastic_timeout(settings, environment);
  if (settings.has("--blacklist-cooldown-range")) {
    rules.cooldown = cooldown_of(settings.values.at("--blacklist-cooldown-range"));
  }
}

std::vector<std::string> notices_of(const HorovodSettings& settings,
                                    const launch::LaunchOptions& options,
                                    const launch::AttemptRules& attempts) {
  std::vector<std::string> notices = settings.ignored;
  for (const HorovodOption& option : horovod_options()) {
    if (option.no_effect.empty() || !settings.has(option.name)) continue;
    notices.push_back(fmt::format("{} has no effect: {}", option.name, option.no_effect));
  }
  for (const char* const name : kElasticDetails) {
    if (is_elastic(settings) || !settings.has(name)) continue;
    if (attempts.restarts.most > 0 && std::ranges::count(kRestartDetails, name) > 0) continue;
    notices.push_back(fmt::format("{} has no effect without {} or --min-np", name, kScript));
  }
  if (settings.is_on("--verbose") && options.node.is_only()) add_places(options, notices);
  return notices;
}

std::vector<launch::HostSlots> hosts_of(const HorovodSettings& settings) {
  std::vector<std::string_view> given;
  for (const char* const name : {"--hosts", "--hostfile", kScript}) {
    if (settings.has(name)) given.emplace_back(name);
  }
  if (given.size() > 1) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("{} and {} both name the hosts: give only one of them", given[0], given[1]));
  }
  if (settings.has("--hosts")) return hosts_in_list(settings.text("--hosts"));
  if (settings.has("--hostfile")) return hosts_in_file(settings.text("--hostfile"));
  return {};
}

std::optional<launch::ElasticOptions> elastic_of(const HorovodSettings& settings,
                                                 std::optional<int> ranks,
                                                 const Environment& environment,
                                                 const launch::Wording& wording) {
  if (!is_elastic(settings)) return std::nullopt;
  launch::ElasticOptions options;
  options.min_ranks = settings.number("--min-np").value_or(ranks.value_or(1));
  options.max_ranks = settings.number("--max-np");
  options.discovery_script = settings.text(kScript);
  options.slots = settings.number("--slots-per-host").value_or(1);
  options.timeout = elastic_timeout(settings, environment);
  options.reset_limit = settings.number("--reset-limit");
  if (settings.has("--blacklist-cooldown-range")) {
    options.cooldown = cooldown_of(settings.values.at("--blacklist-cooldown-range"));
  }
  if (ranks) check_order("--min-np", options.min_ranks, wording.count, *ranks);
  if (options.max_ranks) {
    check_order("--min-np", options.min_ranks, "--max-np", *options.max_ranks);
    if (ranks) check_order(wording.count, *ranks, "--max-np", *options.max_ranks);
  }
  return options;
}

void check_controller(const HorovodSettings& settings) {
  for (const auto& [name, instead] :
       {std::pair{"--mpi", "give --launcher mpi, or start the ranks with mpirun -np 2 ./train"},
        std::pair{"--jsrun", "start the ranks with jsrun -n 2 ./train"}}) {
    if (!settings.is_on(name)) continue;
    throw Error(ErrorKind::kUsage,
                fmt::format("{0}: peal connects the ranks without MPI: leave out {0} (in a config "
                            "file: controller), or {1}",
                            name,
                            instead));
  }
}

}  // namespace peal::cli
