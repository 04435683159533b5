// The place of a rank among hosts of several ranks each.
#pragma once

#include <vector>

#include "peal/schedule/schedule.h"

namespace peal::plan::two_level {

/// Ranks of one host are neighbours, and every host has the same number of ranks. The ranks with
/// the same index on all hosts are *partners*: only partners send each other messages.
class Levels {
 public:
  Levels(const schedule::Problem& problem, Rank self)
      : local_(problem.ranks_per_host), hosts_(problem.ranks / local_), self_(self) {}

  Rank self() const { return self_; }
  /// How many ranks a host has.
  int local() const { return local_; }
  int hosts() const { return hosts_; }

  int host() const { return self_ / local_; }
  int index() const { return self_ % local_; }
  int host_of(Rank rank) const { return rank / local_; }
  int index_of(Rank rank) const { return rank % local_; }

  schedule::Ranks host_ranks() const { return {.first = host() * local_, .count = local_}; }
  /// The rank of this host with that index.
  Rank neighbour(int index) const { return rank(host(), index); }
  /// The indices of the other ranks of the host, beginning after this rank, so that the ranks of a
  /// host do not all read from one rank at once.
  std::vector<int> neighbours() const {
    std::vector<int> indices;
    for (int step = 1; step < local_; ++step) indices.push_back((index() + step) % local_);
    return indices;
  }

  /// `host` modulo the number of hosts: -1 is the last host.
  int around(int host) const { return (host % hosts_ + hosts_) % hosts_; }
  Rank rank(int host, int index) const { return around(host) * local_ + index; }
  Rank partner(int host) const { return rank(host, index()); }

 private:
  int local_;
  int hosts_;
  Rank self_;
};

}  // namespace peal::plan::two_level
