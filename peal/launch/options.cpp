#include "peal/launch/options.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/config/launch_mark.h"

namespace peal::launch {

namespace {

constexpr std::array<std::string_view, 12> kOfTheLauncher = {"RANK",
                                                             "LOCAL_RANK",
                                                             "WORLD_SIZE",
                                                             "LOCAL_WORLD_SIZE",
                                                             "GROUP_RANK",
                                                             "GROUP_WORLD_SIZE",
                                                             "NODE_RANK",
                                                             "MASTER_ADDR",
                                                             "MASTER_PORT",
                                                             "PEAL_JOB",
                                                             "PEAL_LAUNCHED",
                                                             "PEAL_TERMINAL_WIDTH"};

bool is_of_the_launcher(std::string_view name) {
  return std::ranges::count(kOfTheLauncher, name) > 0 ||
         std::ranges::count(kHorovodPlace, name) > 0;
}

void check(const Assignment& variable, const Wording& wording) {
  if (!is_of_the_launcher(variable.name)) return;
  throw Error(ErrorKind::kUsage,
              fmt::format("-x {0}: {3} sets {0} for each rank{1}; leave it out (to override it "
                          "nevertheless: env {0}={2} before the command)",
                          variable.name,
                          variable.name == "WORLD_SIZE" ? ", from " + wording.count : "",
                          variable.value,
                          wording.program));
}

/// Nodes of one host would be counted twice if a node had hosts of its own.
void check_nodes(const LaunchOptions& options) {
  const rendezvous::NodePlace& node = options.node;
  if (node.is_only()) return;
  if (!options.hosts.empty()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("-H and --hostfile name the hosts of a job that one {0} starts, but "
                            "this is node {1} of {2} ({3}), and each node has its own {0}: leave "
                            "the hosts out, or give --standalone",
                            options.wording.program,
                            node.node,
                            node.nodes,
                            node.source));
  }
  if (options.ranks <= kMostRanks / node.nodes) return;
  throw Error(ErrorKind::kUsage,
              fmt::format("{} nodes of {} ranks are more than {} ranks: start fewer ranks",
                          node.nodes,
                          options.ranks,
                          kMostRanks));
}

}  // namespace

Rank first_rank_of(const LaunchOptions& options) { return options.node.node * options.ranks; }

int world_size_of(const LaunchOptions& options) { return options.node.nodes * options.ranks; }

TimePoint warning_time(const LaunchOptions& options, TimePoint start) {
  if (!options.warn_before) return TimePoint::max();
  TimePoint end = options.allocation_end.value_or(TimePoint::max());
  if (options.time_limit) end = std::min(end, start + *options.time_limit);
  return end == TimePoint::max() ? end : end - *options.warn_before;
}

void check(const LaunchOptions& options) {
  if (options.command.empty() || options.command.front().empty()) {
    throw Error(ErrorKind::kUsage,
                "no command to run: put it last, as in: " + options.wording.example());
  }
  if (options.ranks < 1 || options.ranks > kMostRanks) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("cannot start {} ranks: {} takes the number of ranks, {}",
                    options.ranks,
                    options.wording.count,
                    options.ranks < 1 ? "1 or more" : fmt::format("at most {}", kMostRanks)));
  }
  check_nodes(options);
  plan_hosts(options.hosts, options.ranks);
  for (const Assignment& variable : options.variables) check(variable, options.wording);
  if (options.grace < Timeout(0)) {
    throw Error(ErrorKind::kUsage, "--grace takes seconds, 0 or more");
  }
}

}  // namespace peal::launch
