#include "peal/cli/run_command.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "peal/base/bracketed.h"
#include "peal/base/error.h"
#include "peal/base/parse_number.h"
#include "peal/base/printable.h"
#include "peal/cli/check_build.h"
#include "peal/cli/elastic_arguments.h"
#include "peal/cli/horovod_config_file.h"
#include "peal/cli/host_engine.h"
#include "peal/cli/injection.h"
#include "peal/cli/leading_options.h"
#include "peal/cli/mpirun_options.h"
#include "peal/cli/rank_count.h"
#include "peal/cli/ranks_text.h"
#include "peal/cli/spelling.h"
#include "peal/config/environment.h"
#include "peal/launch/containers/engine_client.h"
#include "peal/launch/own_host.h"
#include "peal/rendezvous/read_node_place.h"
#include "peal/rendezvous/slurm_allocation.h"

namespace peal::cli {
namespace {

using launch::agents::Engine;

/// Hosts may have to pull an image before they answer.
constexpr Timeout kPullLimit{600'000};

constexpr const char* kRunSummary = "Run a command as n ranks on this machine or on several hosts";

/// {0}: "peal run -n"
constexpr fmt::string_view kRunDetails =
    R"(Everything after COMMAND belongs to it, options included.

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
  {0} 2 ./train --epochs 5
  {0} 4 --log-dir logs python3 train.py
  {0} 2 -x OMP_NUM_THREADS=1 --bind none ./train
  {0} 2 --inject faults ./train
  {0} 2 -- sh -c 'echo rank $RANK of $WORLD_SIZE'
  {0} 4 -H node1:2,node2:2 ./train

The commands peal run and horovodrun have the same options. peal run labels
lines with [0], and horovodrun with [0]<stdout>:. A switch such as --autotune
has an opposite, --no-autotune; without both, the environment decides.)";

/// Shows the words by which the user has called the program, instead of the names in `app`.
class UsageFormatter final : public CLI::Formatter {
 public:
  explicit UsageFormatter(std::string program) : program_(std::move(program)) {}
  std::string make_usage(const CLI::App* /*app*/, std::string /*name*/) const override {
    return fmt::format("Usage: {} [OPTIONS] COMMAND...\n", program_);
  }

 private:
  std::string program_;
};

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

launch::Binding parse_binding(const std::string& text) {
  if (text == "cores" || text == "core") return launch::Binding::kCores;  // mpirun's --bind-to core
  if (text == "none") return launch::Binding::kNone;
  throw Error(ErrorKind::kUsage, fmt::format("--bind \"{}\": it takes cores or none", text));
}

}  // namespace

RunCommand::RunCommand(CLI::App& app, launch::Labels labels, const launch::Wording& wording)
    : run_(app.add_subcommand("run", kRunSummary)) {
  options_.labels = labels;
  options_.wording = wording;
  run_->formatter(std::make_shared<UsageFormatter>(wording.program));
  run_->footer(fmt::format(kRunDetails, wording.program + " " + wording.count));
  run_->set_version_flag(
      "-v,--version",
      fmt::format("peal {}, with the options of Horovod {}", PEAL_VERSION, kHorovodVersion));
  check_build_ = run_->add_flag("--check-build")
                     ->description("Show what peal can do, in Horovod's words (-cb)");
  add_options();
  torchrun_.emplace(*run_);
  horovod_.emplace(*run_);
  add_mpirun_options(*run_);
}

void RunCommand::add_options() {
  run_->add_option(
          "-n",
          counts_,
          "The number of ranks, or cpu, gpu or auto (also: -np, --num-proc, --nproc-per-node)")
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
  run_->add_option(
          "--bind,--bind-to", binding_, "Bind each rank to its share of the cores, or do not")
      ->type_name("cores|none");
  run_->add_option(
          "--timeout", limits_.timeout, "End the ranks after this time; the exit code is then 124")
      ->type_name("SECONDS");
  run_->add_option("--warn-before",
                   limits_.warn_before,
                   "Ask the ranks to stop this time before --timeout, or before Slurm ends the job")
      ->type_name("SECONDS");
  run_->add_option("--grace,--grace-period",
                   limits_.grace,
                   "Seconds between ending a rank by SIGTERM and by SIGKILL (5)")
      ->type_name("SECONDS");
  add_engine_options();
}

/// Options for the programs that start agents on other hosts, or containers.
void RunCommand::add_engine_options() {
  run_->add_option("--launcher",
                   launcher_,
                   "What starts the agents on other hosts (slurm in an allocation, else ssh)")
      ->type_name("ssh|slurm|mpi");
  run_->add_option("--peal-path",
                   peal_path_,
                   "Where the program peal is on other hosts (the path that it has here)")
      ->type_name("PATH");
  run_->add_option("--image", image_, "Run each rank in a container of this image")
      ->type_name("IMAGE");
  run_->add_option("--container-engine",
                   container_engine_,
                   "The engine for --image (podman, or docker if podman is missing)")
      ->type_name("PROGRAM");
  run_->add_option("--container-option",
                   container_options_,
                   "An option for the engine, such as --container-option=--volume=/data:/data")
      ->type_name("OPTION")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

/// mpirun starts several programs by `-np 1 ./a : -np 2 ./b`.
void refuse_other_programs(const std::vector<std::string>& command) {
  const auto colon = std::ranges::find(command, ":");
  if (colon == command.end() || colon + 1 == command.end() || !is_rank_count(*(colon + 1))) return;
  throw Error(ErrorKind::kUsage,
              "`:` begins another program for mpirun: peal run starts one program, and a job file "
              "starts several as roles (peal submit)");
}

void RunCommand::take_command(std::vector<std::string>& arguments) {
  const std::size_t i = spell_leading_options(*run_, options_.wording, arguments);
  if (i == arguments.size()) return;
  const bool marked = arguments[i] == "--";
  const auto command = arguments.begin() + static_cast<std::ptrdiff_t>(i);
  options_.command = {command + (marked ? 1 : 0), arguments.end()};
  if (!marked) refuse_other_programs(options_.command);
  arguments.erase(command, arguments.end());
}

int RunCommand::count_ranks(const std::vector<launch::HostSlots>& hosts) const {
  if (const auto count = parse_count(counts_, options_.wording)) return *count;
  if (hosts.empty()) {
    if (const auto count = count_in(process_environment())) return *count;
    const auto allocation = rendezvous::read_slurm_allocation(process_environment());
    if (allocation && allocation->has_tasks) return allocation->nodes.front().tasks;
    throw missing_count(options_.command, options_.wording);
  }
  int slots = 0;
  for (const launch::HostSlots& host : hosts) slots += host.slots;
  return slots;
}

/// The node of this machine, if it is one of several. A list of hosts and a discovery script say
/// which machines the job has, so the environment does not.
void set_node(const TorchrunValues& given,
              const HorovodSettings& settings,
              bool is_elastic,
              launch::LaunchOptions& options) {
  const rendezvous::NodeOptions node = node_options_of(given);
  if (!options.hosts.empty() && node.nodes.value_or(1) > 1 && !node.node) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--nodes {} does not go with a list of hosts, because one launcher "
                            "starts all ranks: leave out --nodes, and give the ranks of each host, "
                            "as in -H h1:2,h2:2",
                            *node.nodes));
  }
  const bool has_hosts = !options.hosts.empty() || settings.has("--host-discovery-script");
  const Environment environment = has_hosts ? fixed_environment({}) : process_environment();
  const rendezvous::Process process{.user = ::getuid(), .parent = ::getppid()};
  options.node =
      rendezvous::read_node_place(node, environment, process).value_or(rendezvous::NodePlace{});
  if (!is_elastic || options.node.is_only()) return;
  throw Error(ErrorKind::kUsage,
              fmt::format("this is node {} of {} ({}), and one launcher starts all ranks of an "
                          "elastic job: name the hosts by -H, --hostfile or "
                          "--host-discovery-script, or give --standalone",
                          options.node.node,
                          options.node.nodes,
                          options.node.source));
}

bool is_this_machine(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

/// "node 1 of 2 (RANK and WORLD_SIZE): ranks 2 to 3 of 4; the ranks meet at m:29500"
void add_node_notice(const launch::LaunchOptions& options, std::vector<std::string>& notices) {
  if (options.node.is_only()) return;
  const std::string ranks = ranks_text(launch::first_rank_of(options), options.ranks);
  notices.push_back(fmt::format("node {} of {} ({}): {} of {}; the ranks meet at {}:{}{}",
                                options.node.node,
                                options.node.nodes,
                                options.node.source,
                                ranks,
                                launch::world_size_of(options),
                                bracketed(options.node.master),
                                options.node.port,
                                is_this_machine(options.node.master) ? ", on this machine" : ""));
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

/// In a batch script of Slurm or a shell of salloc, the nodes of the job are the hosts, unless the
/// user names hosts. Returns whether they are.
bool RunCommand::take_allocation(const HorovodSettings& settings,
                                 const TorchrunValues& torchrun,
                                 const std::optional<launch::ElasticOptions>& elastic,
                                 launch::LaunchOptions& options) const {
  const rendezvous::NodeOptions node = node_options_of(torchrun);
  const bool is_placed =
      node.is_standalone || node.nodes || settings.has("--host-discovery-script");
  if (!options.hosts.empty() || is_placed) return false;
  const auto allocation = rendezvous::read_slurm_allocation(process_environment());
  if (!allocation || (launcher_.empty() && is_only_node(*allocation))) return false;
  std::optional<int> ranks = parse_count(counts_, options_.wording);
  if (elastic) ranks = elastic->max_ranks.value_or(elastic->min_ranks);
  // The spare nodes of an elastic job are among those with tasks.
  if (elastic && allocation->has_tasks) ranks.reset();
  options.hosts = slots_of(*allocation, ranks);
  if (!elastic && ranks) check_room(options.hosts, *ranks);
  return true;
}

/// Errors: usage, for --max-restarts in an elastic job.
launch::AttemptRules attempts_of(const TorchrunValues& torchrun,
                                 const HorovodSettings& settings,
                                 const launch::LaunchOptions& options,
                                 bool is_elastic) {
  launch::AttemptRules attempts;
  attempts.restarts.most = restarts_of(torchrun, options.node);
  set_limits(settings, process_environment(), attempts);
  attempts.least_ranks = attempts.most_ranks = options.ranks;
  if (is_elastic && attempts.restarts.most > 0) {
    throw Error(ErrorKind::kUsage,
                "--max-restarts has no effect in an elastic job, which begins a new round after a "
                "failure: leave it out, or give --reset-limit");
  }
  return attempts;
}

std::vector<std::string> all_notices(const TorchrunValues& torchrun,
                                     const HorovodSettings& settings,
                                     const launch::LaunchOptions& options,
                                     const launch::AttemptRules& attempts,
                                     bool is_elastic) {
  std::vector<std::string> notices = notices_of(settings, options, attempts);
  if (is_elastic && options.node.port != 0) {
    notices.emplace_back(
        "the port is not used: in an elastic job, the ranks of each round meet at a free port");
  }
  const std::vector<std::string> of_torchrun = notices_of(torchrun);
  notices.insert(notices.end(), of_torchrun.begin(), of_torchrun.end());
  add_node_notice(options, notices);
  return notices;
}

RunRequest RunCommand::request() const {
  HorovodSettings settings = settle(horovod_->given(), read_horovod_config);
  const TorchrunValues torchrun = torchrun_->given();
  check_controller(settings);
  launch::LaunchOptions options = options_;
  options.command = command_of(torchrun, options_.command);
  const ElasticArguments arguments(counts_, options_.wording, torchrun);
  arguments.take_ranges(settings);
  options.hosts = hosts_of(settings);
  auto elastic = arguments.options(settings);
  if (elastic) refuse_in_elastic_job("--inject", faults_, "kill workers");
  if (elastic) refuse_in_elastic_job("--timeout", limits_.timeout, "use timeout(1)");
  const auto launcher = parse_launcher(launcher_);
  const bool is_in_allocation = take_allocation(settings, torchrun, elastic, options);
  check_hosts_of_launcher(launcher_,
                          !options.hosts.empty() || settings.has("--host-discovery-script"));
  if (elastic && elastic->discovery_script.empty()) {
    elastic->hosts = arguments.hosts(options.hosts, *elastic);
    if (!options.hosts.empty()) options.hosts = elastic->hosts;
    if (elastic->hosts.empty()) elastic->hosts = {{launch::kDefaultHost, count_ranks({})}};
  }
  options.variables = variables(settings);
  options.ranks = elastic ? elastic->min_ranks : count_ranks(options.hosts);
  set_output(settings, options);
  set_node(torchrun, settings, elastic.has_value(), options);
  options.binding = parse_binding(binding_);
  set_time_limits(limits_, options);
  check(options);
  hide_output(torchrun, elastic.has_value(), options);
  RunRequest request;
  take_container(elastic.has_value(), request);
  const bool has_others = launcher || is_in_allocation || launch::has_other_hosts(options.hosts) ||
                          (elastic && !elastic->discovery_script.empty());
  if (elastic && has_others) elastic->hosts_are = launch::HostsAre::kAnyMachine;
  if (has_others) {
    const Engine by_itself = is_in_allocation ? Engine::kSlurm : Engine::kSsh;
    take_engine(launcher.value_or(by_itself), settings, options, request);
  }
  request.attempts = attempts_of(torchrun, settings, options, elastic.has_value());
  if (elastic) check(*elastic);
  request.notices = all_notices(torchrun, settings, options, request.attempts, elastic.has_value());
  request.options = std::move(options);
  request.elastic = std::move(elastic);
  return request;
}

void RunCommand::take_engine(Engine engine,
                             const HorovodSettings& settings,
                             launch::LaunchOptions& options,
                             RunRequest& request) const {
  request.engine = engine_options(engine, peal_path_, settings);
  if (engine == Engine::kSlurm) check_nodes_of_job(options.hosts);
  if (options.labels == launch::Labels::kRank) options.labels = launch::Labels::kHost;
  if (const auto seconds = settings.number("--start-timeout")) {
    request.patience.start = std::chrono::seconds(*seconds);
  }
}

void RunCommand::take_container(bool is_elastic, RunRequest& request) const {
  if (image_.empty()) {
    if (run_->count("--image") > 0) {
      throw Error(ErrorKind::kUsage,
                  "--image \"\": it takes the name of an image; check for an empty shell variable");
    }
    if (container_engine_.empty() && container_options_.empty()) return;
    throw Error(ErrorKind::kUsage, "--container-engine and --container-option need --image");
  }
  if (is_elastic) {
    throw Error(ErrorKind::kUsage, "--image does not work in an elastic job: leave it out");
  }
  request.container = {.image = image_, .options = container_options_};
  request.container_engine =
      container_engine_.empty()
          ? process_environment()(launch::containers::kEngineVariable).value_or("")
          : container_engine_;
  request.patience.start = kPullLimit;
}

}  // namespace peal::cli
