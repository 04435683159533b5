// Exchanges beats between this rank and some ranks of other hosts (watch.h), on connections and a
// thread of their own. Beats detect within a second that a host has vanished or a line is cut. The
// system would take minutes to report that. process_transport.cpp makes one for each transport that
// reaches other hosts.
//
// A beat is a short frame that names the stopped ranks of the sender's host. While a beat is
// unacknowledged no other is sent, and the system repeats it at even intervals. So a line that is
// down for some hundred milliseconds answers soon after. If a peer closes its heartbeat connection,
// the peer does not count as lost: the streams report how a peer has left.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "peal/base/guarded.h"
#include "peal/base/units.h"
#include "peal/net/stream.h"
#include "peal/system/fd.h"
#include "peal/system/per_process.h"
#include "peal/transport/liveness/peer_monitor.h"
#include "peal/transport/liveness/presence.h"

namespace peal::transport {

/// Threads: any number at once.
class Heartbeats final {
 public:
  /// Called on the thread of the beats, at most once for each rank.
  using Lost = std::function<void(Rank peer)>;
  /// Called on the thread of the beats, once for each beat. Returns the ranks of this host that are
  /// stopped.
  using Stopped = std::function<std::vector<Rank>()>;

  /// `connections`: proved, over TCP.
  /// Errors: resource.
  Heartbeats(
      std::map<Rank, std::unique_ptr<net::Stream>>&& connections,
      const HeartbeatLimits& limits,
      Lost lost,
      Stopped stopped = [] { return std::vector<Rank>(); });
  ~Heartbeats();
  Heartbeats(const Heartbeats&) = delete;
  Heartbeats& operator=(const Heartbeats&) = delete;

  /// What is known of a rank. Without beats from the rank, the state is kStopped if another rank of
  /// its host says so, and otherwise kUnknown.
  Presence presence(Rank peer) const;

 private:
  struct BeatConnection;

  void beat(std::map<Rank, BeatConnection> connections);
  /// kClosed: the connection is not used any more, but its peer is not lost.
  enum class Finding : unsigned char { kFine, kClosed, kLost, kDamaged };
  Finding exchange_beats(BeatConnection& connection, TimePoint now) const;
  /// Exchanges beats, and records and reports the finding. Returns whether to keep the connection.
  bool check(Rank peer, BeatConnection& connection, TimePoint now);

  struct Known {
    Presence presence;
    std::vector<Rank> stopped;  // of its host
  };

  const OwnerProcess owner_;
  HeartbeatLimits limits_;
  Lost lost_;
  Stopped stopped_;
  std::string beat_;  // the frame of the next one
  mutable Guarded<std::map<Rank, Known>> known_;
  Fd stop_;
  std::thread thread_;
};

}  // namespace peal::transport
