// Which ranks of the own host are stopped, for those of other hosts to know: they exchange beats
// with one rank of it. Used by process_transport.cpp and called by heartbeats.cpp.
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <vector>

#include "peal/base/units.h"
#include "peal/transport/presence.h"

namespace peal::transport {

class StoppedRanks final {
 public:
  /// `presence` says what is known of one of `ranks`.
  StoppedRanks(std::vector<Rank> ranks, std::function<Presence(Rank)> presence);

  /// Those that were stopped when they were last looked at, ascending. Looks at the next few: each
  /// look costs microseconds, and every rank of a host looks.
  std::vector<Rank> look();

 private:
  std::vector<Rank> ranks_;
  std::function<Presence(Rank)> presence_;
  std::size_t next_ = 0;
  std::set<Rank> stopped_;
};

}  // namespace peal::transport
