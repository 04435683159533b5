#include "peal/launch/rank_command.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "peal/config/config.h"
#include "peal/config/environment.h"
#include "peal/config/launch_mark.h"
#include "peal/launch/job/rank_variables.h"

namespace peal::launch {
namespace {

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
  set_rank_variables({.rank = rank,
                      .world_size = world_size_of(options),
                      .local_rank = place.local_rank,
                      .local_size = place.local_size,
                      .group = group.index,
                      .groups = group.count,
                      .cross_rank = place.cross_rank,
                      .cross_size = place.cross_size,
                      .host = place.host},
                     variables);
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

void add_shared_variables(const JobContext& job,
                          int threads,
                          const Variables& given,
                          Variables& variables) {
  variables["PEAL_JOB"] = job.id;
  // An empty secret is a mistake, from a script whose own variable is empty: treat it as unset.
  if (const auto own = variables.find("PEAL_SECRET");
      own != variables.end() && own->second.empty()) {
    variables.erase(own);
  }
  if (given.contains("PEAL_SECRET_FILE")) {
    variables.erase("PEAL_SECRET");  // ranks would prefer it to the file
  } else if (!variables.contains("PEAL_SECRET_FILE") && !job.secret.empty()) {
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
  for (const auto& [name, value] : given) variables[name] = value;
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
  Variables given;
  for (const Assignment& added : options.variables) given[added.name] = added.value;
  add_shared_variables(job, threads, given, variables);
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
