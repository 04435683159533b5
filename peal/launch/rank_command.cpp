#include "peal/launch/rank_command.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "peal/config/config.h"
#include "peal/config/environment.h"
#include "peal/config/launch_mark.h"

namespace peal::launch {
namespace {

bool sets(const LaunchOptions& options, std::string_view name) {
  return std::ranges::count(options.variables, name, &Assignment::name) > 0;
}

struct Group {
  int index = 0;
  int count = 1;
};

/// The host of the rank among the hosts of the job. Each node counts as a host.
Group group_of(const LaunchOptions& options, const HostPlan& plan, Rank local) {
  if (!options.node.is_only()) return {options.node.node, options.node.nodes};
  const auto own = std::ranges::find_if(
      plan.blocks, [&](const HostBlock& block) { return local < block.first + block.ranks; });
  return {static_cast<int>(own - plan.blocks.begin()), static_cast<int>(plan.blocks.size())};
}

/// The variables that say which rank of which size a process is, in torch's and Horovod's names.
void set_place(const LaunchOptions& options, Rank rank, Variables& variables) {
  const HostPlan plan = plan_hosts(options.hosts, options.ranks);
  const Rank local = rank - first_rank_of(options);
  const Group group = group_of(options, plan, local);
  RankPlace place = place_of(plan, local);
  if (!options.node.is_only()) {  // all nodes have the same number of ranks
    place.cross_rank = group.index;
    place.cross_size = group.count;
  }
  variables["RANK"] = variables["HOROVOD_RANK"] = fmt::format("{}", rank);
  variables["WORLD_SIZE"] = variables["HOROVOD_SIZE"] = fmt::format("{}", world_size_of(options));
  variables["LOCAL_RANK"] = variables["HOROVOD_LOCAL_RANK"] = fmt::format("{}", place.local_rank);
  variables["LOCAL_WORLD_SIZE"] = variables["HOROVOD_LOCAL_SIZE"] =
      fmt::format("{}", place.local_size);
  variables["GROUP_RANK"] = variables["NODE_RANK"] = fmt::format("{}", group.index);
  variables["GROUP_WORLD_SIZE"] = fmt::format("{}", group.count);
  variables["HOROVOD_CROSS_RANK"] = fmt::format("{}", place.cross_rank);
  variables["HOROVOD_CROSS_SIZE"] = fmt::format("{}", place.cross_size);
  variables["HOROVOD_HOSTNAME"] = place.host;
}

}  // namespace

Variables process_variables() {
  Variables variables;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

Variables make_environment(const LaunchOptions& options,
                           const JobContext& job,
                           Rank rank,
                           int threads,
                           const Variables& inherited) {
  Variables variables = inherited;
  set_place(options, rank, variables);
  variables["MASTER_ADDR"] = job.host;
  variables["MASTER_PORT"] = fmt::format("{}", job.port);
  variables["PEAL_JOB"] = job.id;
  // An empty secret is a mistake, from a script whose own variable is empty: treat it as unset.
  if (variables.contains("PEAL_SECRET") && variables["PEAL_SECRET"].empty()) {
    variables.erase("PEAL_SECRET");
  }
  if (sets(options, "PEAL_SECRET_FILE")) {
    variables.erase("PEAL_SECRET");  // ranks would prefer it to the file
  } else if (!inherited.contains("PEAL_SECRET_FILE") && !job.secret.empty()) {
    variables.try_emplace("PEAL_SECRET", job.secret.text());
  }
  if (job.terminal_width > 0) {
    variables["PEAL_TERMINAL_WIDTH"] = fmt::format("{}", job.terminal_width);
  } else {
    variables.erase("PEAL_TERMINAL_WIDTH");
  }
  if (!job.flights.empty()) variables.try_emplace(kFlightDirVariable, job.flights);
  variables.try_emplace("OMP_NUM_THREADS", fmt::format("{}", threads));
  // Python buffers output into a pipe, and a crash would lose the last lines.
  variables.try_emplace("PYTHONUNBUFFERED", "1");
  for (const Assignment& added : options.variables) variables[added.name] = added.value;
  variables[kLaunchMark] = launch_mark(fixed_environment(variables), rank, world_size_of(options));
  return variables;
}

std::vector<RankCommand> plan_ranks(const LaunchOptions& options,
                                    const JobContext& job,
                                    const std::string& program,
                                    const std::vector<CoreShare>& shares,
                                    const Variables& inherited) {
  std::vector<RankCommand> ranks;
  for (int local = 0; local < options.ranks; ++local) {
    const Rank rank = first_rank_of(options) + local;
    const CoreShare& share = shares[static_cast<std::size_t>(local)];
    ranks.push_back(RankCommand{
        .rank = rank,
        .program = program,
        .arguments = options.command,
        .environment = make_environment(options, job, rank, share.threads, inherited),
        .cpus = options.binding == Binding::kCores ? share.cpus : std::vector<int>{},
    });
  }
  return ranks;
}

}  // namespace peal::launch
