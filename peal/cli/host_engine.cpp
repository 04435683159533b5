#include "peal/cli/host_engine.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/difference.h"
#include "peal/base/error.h"
#include "peal/base/printable.h"
#include "peal/config/environment.h"

namespace peal::cli {
namespace {

using launch::agents::Engine;

/// Options of horovodrun that are only for ssh, and their names in ssh.
constexpr std::array<std::pair<const char*, const char*>, 2> kSshOptions = {
    {{"--ssh-port", "-p"}, {"--ssh-identity-file", "-i"}}};

/// A word of --launcher.
struct LauncherWord {
  std::string_view word;
  Engine engine;
};

constexpr std::array kLaunchers = {LauncherWord{"ssh", Engine::kSsh},
                                   LauncherWord{"slurm", Engine::kSlurm},
                                   LauncherWord{"mpi", Engine::kMpi}};

std::vector<std::string> ssh_options(Engine engine, const HorovodSettings& settings) {
  std::vector<std::string> options;
  for (const auto& [name, name_in_ssh] : kSshOptions) {
    if (!settings.has(name)) continue;
    if (engine != Engine::kSsh) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("{} is an option of ssh, and {} starts these ranks: leave it out, or "
                              "give --launcher ssh",
                              name,
                              program_of(engine)));
    }
    options.insert(options.end(), {name_in_ssh, settings.text(name)});
  }
  return options;
}

}  // namespace

std::optional<Engine> parse_launcher(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const auto known = std::ranges::find(kLaunchers, text, &LauncherWord::word);
  if (known != kLaunchers.end()) return known->engine;
  std::array<std::string_view, kLaunchers.size()> words;
  std::ranges::transform(kLaunchers, words.begin(), &LauncherWord::word);
  const std::string_view nearest = nearest_word(text, words);
  throw Error(ErrorKind::kUsage,
              fmt::format("--launcher {}: it must be ssh, slurm or mpi{}",
                          quoted_beginning(text),
                          nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest)));
}

std::vector<launch::HostSlots> slots_of(const rendezvous::SlurmAllocation& allocation,
                                        std::optional<int> ranks) {
  int tasks = 0;
  for (const rendezvous::AllocatedNode& node : allocation.nodes) tasks += node.tasks;
  if (!ranks && !allocation.has_tasks) {
    throw Error(ErrorKind::kUsage,
                fmt::format("how many ranks on the {} nodes of this job of Slurm? Use -n, or give "
                            "sbatch or salloc a number of tasks (--ntasks)",
                            allocation.nodes.size()));
  }
  const bool counts_tasks = allocation.has_tasks && ranks.value_or(tasks) == tasks;
  std::vector<launch::HostSlots> hosts;
  for (const rendezvous::AllocatedNode& node : allocation.nodes) {
    hosts.push_back({node.name, counts_tasks ? node.tasks : std::max(node.tasks, node.cpus)});
  }
  return hosts;
}

void check_room(const std::vector<launch::HostSlots>& hosts, int ranks) {
  int slots = 0;
  for (const launch::HostSlots& host : hosts) slots += host.slots;
  if (ranks <= slots) return;
  throw Error(ErrorKind::kUsage,
              fmt::format("{} ranks do not fit: the nodes of this job of Slurm have room for {}; "
                          "give sbatch or salloc more tasks (--ntasks) or CPUs (--cpus-per-task)",
                          ranks,
                          slots));
}

void check_nodes_of_job(const std::vector<launch::HostSlots>& hosts) {
  const auto allocation = rendezvous::read_slurm_allocation(process_environment());
  if (!allocation) return;
  std::vector<std::string> known;
  for (const rendezvous::AllocatedNode& node : allocation->nodes) known.push_back(node.name);
  for (const launch::HostSlots& host : hosts) {
    if (std::ranges::find(known, host.name) != known.end()) continue;
    throw Error(ErrorKind::kUsage,
                fmt::format("{} is not a node of this job of Slurm, which has {}; --launcher ssh "
                            "reaches other hosts",
                            host.name,
                            fmt::join(known, ", ")));
  }
}

bool is_only_node(const rendezvous::SlurmAllocation& allocation) {
  const auto here = process_environment()("SLURMD_NODENAME");
  return allocation.nodes.size() == 1 && here == allocation.nodes.front().name;
}

void check_hosts_of_launcher(const std::string& launcher, bool has_hosts) {
  if (launcher.empty() || has_hosts) return;
  throw Error(
      ErrorKind::kUsage,
      launcher == "slurm"
          ? "--launcher slurm: this is neither a batch script of Slurm nor a shell of salloc"
          : fmt::format("--launcher {} needs hosts: name them with -H host1,host2 or "
                        "--hostfile FILE",
                        launcher));
}

launch::agents::EngineOptions engine_options(Engine engine,
                                             const std::string& peal_path,
                                             const HorovodSettings& settings) {
  launch::agents::EngineOptions options{.engine = engine, .peal = peal_path};
  // The agents are the same program as this one.
  if (peal_path.empty()) options.peal = std::filesystem::read_symlink("/proc/self/exe").string();
  options.options = ssh_options(engine, settings);
  if (engine != Engine::kSlurm) return options;
  const auto allocation = rendezvous::read_slurm_allocation(process_environment());
  check_hosts_of_launcher("slurm", allocation.has_value());
  options.components = rendezvous::components_of(*allocation);
  return options;
}

}  // namespace peal::cli
