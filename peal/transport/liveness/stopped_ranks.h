// Which ranks of this host are stopped. A rank of another host exchanges beats with only one rank
// of this host, and learns of the others by it. Used by process_transport.cpp and called by
// heartbeats.cpp.
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <vector>

#include "peal/base/units.h"
#include "peal/transport/liveness/presence.h"

namespace peal::transport {

/// Threads: one at a time.
class StoppedRanks final {
 public:
  /// `presence` returns what is known of one of `ranks`.
  StoppedRanks(std::vector<Rank> ranks, std::function<Presence(Rank)> presence);

  /// The ranks that were stopped at the last look, ascending. Looks at the next few ranks only:
  /// each look costs microseconds, and every rank of a host looks.
  std::vector<Rank> look();

 private:
  std::vector<Rank> ranks_;
  std::function<Presence(Rank)> presence_;
  std::size_t next_ = 0;
  std::set<Rank> stopped_;
};

}  // namespace peal::transport
