// What the groups of one process share toward the other processes of its host, so that a group more
// costs little: an alarm and the thread that sleeps on it, and for each peer process the sign of
// its end and the event that wakes it. One for each rank, made by whoever connects its groups
// (init/connector.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "peal/base/fd.h"
#include "peal/base/guarded.h"
#include "peal/transport/alarm.h"
#include "peal/transport/peer_process.h"
#include "peal/transport/rounds.h"

namespace peal::transport {

/// Of a peer process, what was received of it.
struct HostPeer {
  std::shared_ptr<PeerProcess> process;
  std::shared_ptr<Event> alarm;  // of the peer
};

/// Threads: any number at once.
class HostPeers {
 public:
  /// Errors: resource.
  HostPeers();

  /// By which peers tell this one from others, at random.
  std::uint64_t number() const { return number_; }
  Alarm& alarm() { return rounds_.alarm(); }
  Rounds& rounds() { return rounds_; }

  /// The peer of this number, as it was met before if its process still lives, else what was
  /// received now. The alarm watches its process.
  HostPeer meet(std::uint64_t number, HostPeer received);

 private:
  struct Known {
    std::weak_ptr<PeerProcess> process;
    std::weak_ptr<Event> alarm;
  };

  std::uint64_t number_;
  Rounds rounds_;
  Guarded<std::map<std::uint64_t, Known>> known_;
};

}  // namespace peal::transport
