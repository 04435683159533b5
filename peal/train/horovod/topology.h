// Which ranks share a host: the local and cross ranks of Horovod.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "peal/base/units.h"

namespace peal::hvd {

/// What a rank knows about its place. kUnknown: computed from the hosts.
struct Place {
  static constexpr int kUnknown = -1;

  std::string host = {};
  int local_rank = kUnknown;
  int local_size = kUnknown;
  int cross_rank = kUnknown;
  int cross_size = kUnknown;

  friend bool operator==(const Place&, const Place&) = default;
};

std::string to_text(const Place& place);
/// Errors: mismatch (the text is malformed).
Place place_from(std::string_view text);

struct Topology {
  Rank local_rank = 0;  // among the ranks of this host, in the order of the ranks
  int local_size = 1;
  Rank cross_rank = 0;  // among the ranks with the same local rank, in the order of the ranks
  int cross_size = 1;
  bool is_homogeneous = true;  // all hosts have the same number of ranks

  friend bool operator==(const Topology&, const Topology&) = default;
};

/// Pure. `places`: of all ranks, by rank.
Topology topology_of(std::span<const Place> places, Rank rank);

}  // namespace peal::hvd
