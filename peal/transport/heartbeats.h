// Beats between this rank and some of other hosts (watch.h), on connections and a thread of their
// own: they notice within a second that a host has vanished or a line is cut, of which the system
// says nothing for minutes. process_transport.cpp makes one for each transport that reaches other
// hosts.
//
// A beat is a short frame, which says who of the own host is stopped. While one is unacknowledged
// no other is sent, and the system is told to repeat it at even times: so a line that is down for
// some hundred milliseconds answers soon after. What ends a connection of beats in order is no
// loss: streams tell how a peer has left.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "peal/base/fd.h"
#include "peal/base/guarded.h"
#include "peal/base/per_process.h"
#include "peal/base/units.h"
#include "peal/net/stream.h"
#include "peal/transport/presence.h"
#include "peal/transport/pulse.h"

namespace peal::transport {

/// Threads: any number at once.
class Heartbeats final {
 public:
  /// Called on the thread of the beats, at most once for each rank.
  using Lost = std::function<void(Rank peer)>;
  /// Called on the thread of the beats, once a beat: which ranks of the own host are stopped.
  using Stopped = std::function<std::vector<Rank>()>;

  /// `connections`: proved, over TCP. Errors: resource.
  Heartbeats(
      std::map<Rank, std::unique_ptr<net::Stream>>&& connections,
      const PulseLimits& limits,
      Lost lost,
      Stopped stopped = [] { return std::vector<Rank>(); });
  ~Heartbeats();
  Heartbeats(const Heartbeats&) = delete;
  Heartbeats& operator=(const Heartbeats&) = delete;

  /// What is known of a rank. Where no beats are exchanged with it, or no more, it is kStopped if
  /// one of its host says so, else nothing is known (kUnknown).
  Presence presence(Rank peer) const;

 private:
  struct Line;

  void beat(std::map<Rank, Line> lines);
  enum class Finding : unsigned char { kFine, kOver, kLost, kDamaged };
  Finding look_at(Line& line, TimePoint now) const;
  /// Returns whether the line is still of use.
  bool attend(Rank peer, Line& line, TimePoint now);

  struct Known {
    Presence presence;
    std::vector<Rank> stopped;  // of its host
  };

  const OwnerProcess owner_;
  PulseLimits limits_;
  Lost lost_;
  Stopped stopped_;
  std::string beat_;  // the frame of the next one
  mutable Guarded<std::map<Rank, Known>> known_;
  Fd stop_;
  std::thread thread_;
};

}  // namespace peal::transport
