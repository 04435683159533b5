#include "peal/cli/run_command.h"

#include <signal.h>
#include <unistd.h>

#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/error.h"
#include "peal/base/parse_number.h"
#include "peal/cli/check_build.h"
#include "peal/cli/config_command.h"
#include "peal/cli/horovod_config_file.h"
#include "peal/cli/injection.h"
#include "peal/cli/own_hosts.h"
#include "peal/cli/say.h"
#include "peal/cli/spelling.h"
#include "peal/config/environment.h"
#include "peal/launch/command.h"
#include "peal/launch/cores.h"
#include "peal/launch/dump_place.h"
#include "peal/launch/flights.h"
#include "peal/launch/inherited.h"
#include "peal/launch/job.h"
#include "peal/launch/launcher.h"
#include "peal/launch/outputs.h"
#include "peal/launch/post_mortem.h"
#include "peal/launch/rank_command.h"
#include "peal/system/cpus.h"

namespace peal::cli {
namespace {

constexpr double kLongestGrace = 86'400;  // seconds: a day

constexpr const char* kRunSummary = "Run a command as n ranks on this machine";

constexpr const char* kRunDetails = R"(Everything after COMMAND belongs to it, options included.

Each rank finds RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR,
MASTER_PORT, PEAL_JOB and PEAL_SECRET in its environment, the same in Horovod's
names (HOROVOD_RANK), and runs on its share of the cores (OMP_NUM_THREADS is
their number). Rank 0 reads the standard input.
After the first failure, the launcher ends the other ranks three seconds later.
The report begins with the likely cause and shows its last lines. The exit code
is that rank's exit code, or 128 + the number of its signal. It is 1 if only
output could not be written. If the ranks use peal, the report also names the
rank that caused the failure, and the file with all ranks' last operations.

Examples:
  peal run -n 2 ./train --epochs 5
  peal run -n 4 --log-dir logs python3 train.py
  peal run -n 2 -x OMP_NUM_THREADS=1 --bind none ./train
  peal run -n 2 --inject faults ./train
  peal run -n 2 -- sh -c 'echo rank $RANK of $WORLD_SIZE'
  peal run -n 2 -H localhost:1,127.0.0.1:1 ./train

The command horovodrun has the same options. It labels lines with [0]<stdout>:)";

/// "NAME=value", or "NAME", which stands for its value in this environment.
launch::Assignment parse_assignment(const std::string& text, const Environment& environment) {
  const auto equals = text.find('=');
  const std::string name = text.substr(0, equals);
  if (name.empty()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("-x \"{}\": it takes NAME=VALUE, or NAME alone", text));
  }
  if (equals != std::string::npos) {
    if (name == "PEAL_SECRET") {
      throw Error(ErrorKind::kUsage,
                  "-x PEAL_SECRET=...: every user of this machine can read command lines; set it "
                  "here and give -x PEAL_SECRET, or -x PEAL_SECRET_FILE=PATH");
    }
    return {name, text.substr(equals + 1)};
  }
  const auto value = environment(name);
  if (!value) {
    throw Error(ErrorKind::kUsage,
                fmt::format("-x {0}: {0} is not set here; give its value, as in -x {0}=1", name));
  }
  return {name, *value};
}

Error no_count(const std::vector<std::string>& command) {
  for (std::size_t i = 1; i < command.size(); ++i) {
    const std::string option = as_declared(command[i]);
    if (!option.starts_with("-n")) continue;
    std::string count = option.substr(2);
    if (count.empty() && i + 1 < command.size()) count = command[i + 1];
    if (!try_parse_number<int>(count)) continue;
    return Error(ErrorKind::kUsage,
                 fmt::format("how many ranks? All words after the command belong to it; did "
                             "you mean: peal run -n {} {}",
                             count,
                             command.front()));
  }
  return Error(ErrorKind::kUsage, "how many ranks? Use -n, as in: peal run -n 2 ./train");
}

/// The value of -n; nothing if it is not given.
std::optional<int> parse_count(const std::vector<std::string>& counts) {
  if (counts.empty()) return std::nullopt;
  if (counts.size() > 1) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("-n is given {} times, with {} (-np, --num-proc and --nproc-per-node are "
                    "the same option); give it once",
                    counts.size(),
                    fmt::join(counts, " and ")));
  }
  if (const auto count = try_parse_number<int>(counts.front())) return *count;
  throw Error(ErrorKind::kUsage,
              fmt::format("-n \"{}\": it takes the number of ranks, 1 or more", counts.front()));
}

launch::Binding parse_binding(const std::string& text) {
  if (text == "cores") return launch::Binding::kCores;
  if (text == "none") return launch::Binding::kNone;
  throw Error(ErrorKind::kUsage, fmt::format("--bind \"{}\": it takes cores or none", text));
}

/// Sentences about the hosts of the ranks, for --verbose.
std::vector<std::string> places_of(const launch::LaunchOptions& options) {
  std::vector<std::string> places;
  for (const launch::HostBlock& block : launch::plan_hosts(options.hosts, options.ranks).blocks) {
    places.push_back(fmt::format(
        "host {} has ranks {} to {}", block.name, block.first, block.first + block.ranks - 1));
  }
  return places;
}

void take_output(const HorovodSettings& settings, launch::LaunchOptions& options) {
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

}  // namespace

RunCommand::RunCommand(CLI::App& app, launch::Labels labels)
    : run_(app.add_subcommand("run", kRunSummary)) {
  options_.labels = labels;
  run_->footer(kRunDetails);
  run_->set_version_flag(
      "-v,--version",
      fmt::format("peal {}, with the options of Horovod {}", PEAL_VERSION, kHorovodVersion));
  check_build_ = run_->add_flag("--check-build")
                     ->description("Show what peal can do, in Horovod's words (-cb)");
  add_options();
  horovod_.emplace(*run_);
}

void RunCommand::add_options() {
  run_->add_option(
          "-n", counts_, "The number of ranks to start (also: -np, --num-proc, --nproc-per-node)")
      ->type_name("RANKS")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  run_->add_option("COMMAND", command_, "The program to run, and its arguments")->type_name("");
  run_->add_flag_callback(
      "--no-prefix",
      [this] { options_.labels = launch::Labels::kNone; },
      "Do not put [rank] before each line");
  run_->add_option("--log-dir",
                   options_.log_directory,
                   "Also write each rank's output to rank-N.out and rank-N.err there")
      ->type_name("DIR");
  run_->add_option(
          "-x", variables_, "Set a variable for the ranks; NAME alone: with its value here")
      ->type_name("NAME[=VALUE]")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  run_->add_option("--inject",
                   faults_,
                   "Rehearse the failures in FILE, one a line, such as rank 1 kill at operation 10")
      ->type_name("FILE");
  run_->add_option("--bind", binding_, "Bind each rank to its share of the cores, or do not")
      ->type_name("cores|none");
  run_->add_option(
          "--grace", grace_seconds_, "Seconds between ending a rank by SIGTERM and by SIGKILL (5)")
      ->type_name("SECONDS");
}

void RunCommand::take_command(std::vector<std::string>& arguments) {
  std::size_t i = 0;
  for (; i < arguments.size() && arguments[i].starts_with('-') && arguments[i] != "--"; ++i) {
    arguments[i] = spelled_as_declared(arguments[i]);
    const CLI::Option* option = run_->get_option_no_throw(arguments[i]);
    if (option != nullptr) i += static_cast<std::size_t>(option->get_items_expected_min());
  }
  if (i >= arguments.size()) return;
  const bool marked = arguments[i] == "--";
  const auto command = arguments.begin() + static_cast<std::ptrdiff_t>(i);
  options_.command = launch::with_interpreter({command + (marked ? 1 : 0), arguments.end()});
  arguments.erase(command, arguments.end());
}

std::string RunCommand::spelled_as_declared(const std::string& argument) const {
  return with_two_hyphens(*run_, as_declared(argument));
}

int RunCommand::count_ranks(const std::vector<launch::HostSlots>& hosts) const {
  if (const auto count = parse_count(counts_)) return *count;
  if (hosts.empty()) throw no_count(options_.command);
  int slots = 0;
  for (const launch::HostSlots& host : hosts) slots += host.slots;
  return slots;
}

/// -x comes last, because a later variable overrides an earlier one.
std::vector<launch::Assignment> RunCommand::variables(const HorovodSettings& settings) const {
  const Environment environment = process_environment();
  std::vector<launch::Assignment> variables = variables_of(settings);
  for (const std::string& text : variables_) {
    variables.push_back(parse_assignment(text, environment));
  }
  if (!faults_.empty()) variables.push_back({"PEAL_INJECT", read_faults(faults_)});
  return variables;
}

RunRequest RunCommand::request() const {
  const HorovodSettings settings = settle(horovod_->given(), read_horovod_config);
  check_controller(settings);
  launch::LaunchOptions options = options_;
  options.variables = variables(settings);
  options.hosts = hosts_of(settings);
  if (elastic_of(settings, parse_count(counts_), process_environment())) {
    throw Error(ErrorKind::kUnsupported,
                "peal run cannot start elastic jobs (--min-np, --host-discovery-script)");
  }
  options.ranks = count_ranks(options.hosts);
  take_output(settings, options);
  options.binding = parse_binding(binding_);
  const bool is_grace = grace_seconds_ >= 0 && grace_seconds_ <= kLongestGrace;  // false for NaN
  if (!is_grace) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--grace takes seconds from 0 to {}, as in 0.5", kLongestGrace));
  }
  options.grace = Timeout(static_cast<Timeout::rep>(grace_seconds_ * 1000));
  check(options);
  check_own_hosts(options.hosts);
  RunRequest request{std::move(options), notices_of(settings)};
  if (settings.is_on("--verbose")) {
    for (std::string& place : places_of(request.options))
      request.notices.push_back(std::move(place));
  }
  return request;
}

int run(const RunRequest& request) {
  const launch::LaunchOptions& options = request.options;
  const launch::Variables inherited = launch::without_those_of_a_rank(launch::process_variables());
  const auto path = inherited.find("PATH");
  const launch::CommandLookup command = launch::find_command(
      options.command.front(), path == inherited.end() ? "/usr/bin:/bin" : path->second);
  if (command.exit_code != 0) {
    say(fmt::format("peal: {}\n", command.problem));
    return command.exit_code;
  }
  for (const std::string& notice : request.notices) say(fmt::format("peal: {}\n", notice));
  launch::Variables given = inherited;
  for (const auto& [name, value] : options.variables) given.insert_or_assign(name, value);
  say(announce_faults(given, options.ranks));
  say(warn_of_unknown(given));
  const launch::Flights flights(given);
  if (!flights.problem().empty()) {
    say(fmt::format("peal: the ranks keep no records: {}\n", flights.problem()));
  }
  launch::remove_former_dump(options.log_directory);
  const launch::Target out = launch::target_of(STDOUT_FILENO);
  launch::NewJob made = launch::make_job();
  made.job.terminal_width = launch::line_width(options, out);
  made.job.flights = flights.private_folder();
  const auto shares = launch::divide_cores(launch::usable_cores(), options.ranks, cpu_quota());
  const auto ranks = launch::plan_ranks(options, made.job, command.path, shares, inherited);
  launch::LaunchReport report = launch::run(options, ranks, out, launch::target_of(STDERR_FILENO));
  ::signal(SIGXFSZ, SIG_IGN);  // the report may go to a file that has reached its limit
  report.post_mortem = launch::examine(report, flights, made.job.id, options);
  say(tell_missed_faults(given, report.ends));
  say(launch::describe(report));
  return launch::exit_code(report);
}

}  // namespace peal::cli
