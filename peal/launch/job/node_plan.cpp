#include "peal/launch/job/node_plan.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/error.h"

namespace peal::launch {
namespace {

/// The nodes of each role.
using Counts = std::vector<int>;

/// The least counts, with `extra` more nodes for the roles that may grow, earlier roles first.
Counts counts_with(const Job& job, int extra) {
  Counts counts;
  for (const Role& role : job.roles) {
    const int more = std::min(extra, role.nodes.most - role.nodes.least);
    counts.push_back(role.nodes.least + more);
    extra -= more;
  }
  return counts;
}

/// Places nodes until one has no room.
std::vector<PlannedNode> place(const Job& job,
                               const Counts& counts,
                               std::span<const JobHost> hosts) {
  std::vector<PlannedNode> nodes;
  std::size_t host = 0;
  int on_host = 0;
  std::int64_t used = 0;  // slots
  for (std::size_t role = 0; role < job.roles.size(); ++role) {
    const int ranks = job.roles[role].ranks_per_node;
    for (int node = 0; node < counts[role]; ++node) {
      if (host < hosts.size() && on_host > 0 && used + ranks > hosts[host].slots) {
        ++host;
        on_host = 0;
        used = 0;
      }
      if (host == hosts.size()) return nodes;
      nodes.push_back({role, node, host, on_host});
      ++on_host;
      used += ranks;
    }
  }
  return nodes;
}

std::size_t sum(const Counts& counts) {
  std::size_t nodes = 0;
  for (const int count : counts) nodes += static_cast<std::size_t>(count);
  return nodes;
}

bool fits(const Job& job, const Counts& counts, std::span<const JobHost> hosts) {
  return place(job, counts, hosts).size() == sum(counts);
}

/// "1 host", "2 hosts"
std::string number(std::size_t count, std::string_view thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

Error too_few(const Job& job,
              const Counts& counts,
              std::span<const JobHost> hosts,
              std::size_t all) {
  std::vector<std::string> roles;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    roles.push_back(fmt::format("{} {}", counts[i], job.roles[i].name));
  }
  const std::string spare =
      job.spare_nodes == 0
          ? ""
          : " and " + number(static_cast<std::size_t>(job.spare_nodes), "spare host");
  return Error(ErrorKind::kUsage,
               fmt::format("the job needs {} ({}){}, but the {} ha{} room for {}; add hosts or "
                           "slots (-H host:slots, --hostfile)",
                           number(sum(counts), "node"),
                           fmt::join(roles, ", "),
                           spare,
                           number(all, "host"),
                           all == 1 ? "s" : "ve",
                           place(job, counts, hosts).size()));
}

std::span<const JobHost> without_spare(const Job& job, std::span<const JobHost> hosts) {
  const std::size_t spare = std::min(static_cast<std::size_t>(job.spare_nodes), hosts.size());
  return hosts.first(hosts.size() - spare);
}

}  // namespace

std::vector<PlannedNode> plan_nodes(const Job& job, std::span<const JobHost> hosts) {
  const std::span<const JobHost> usable = without_spare(job, hosts);
  const Counts least = counts_with(job, 0);
  if (!fits(job, least, usable)) throw too_few(job, least, usable, hosts.size());
  int fitting = 0;
  int too_many = node_count(job) - static_cast<int>(sum(least)) + 1;
  while (too_many - fitting > 1) {
    const int middle = fitting + (too_many - fitting) / 2;
    (fits(job, counts_with(job, middle), usable) ? fitting : too_many) = middle;
  }
  return place(job, counts_with(job, fitting), usable);
}

int ranks_with_room(const Job& job, std::span<const JobHost> hosts) {
  const std::span<const JobHost> usable = without_spare(job, hosts);
  const Counts least = counts_with(job, 0);
  const bool is_enough = fits(job, least, usable);
  int ranks = 0;
  for (const PlannedNode& node : is_enough ? plan_nodes(job, hosts) : place(job, least, usable)) {
    ranks += job.roles[node.role].ranks_per_node;
  }
  return ranks;
}

}  // namespace peal::launch
