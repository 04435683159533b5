// Beats between this rank and some of other hosts (watch.h), on connections and a thread of their
// own: they notice within a second that a host has vanished or a line is cut, of which the system
// says nothing for minutes. connect.cpp makes one for each transport that reaches other hosts.
//
// A beat is one byte. While one is unacknowledged no other is sent, and the system is told to
// repeat it at even times: so a line that is down for some hundred milliseconds answers soon after.
// What ends a connection of beats in order is no loss: streams tell how a peer has left.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <thread>

#include "peal/base/fd.h"
#include "peal/base/guarded.h"
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

  /// `connections`: proved, over TCP. Errors: resource.
  Heartbeats(std::map<Rank, std::unique_ptr<net::Stream>>&& connections,
             const PulseLimits& limits,
             Lost lost);
  ~Heartbeats();
  Heartbeats(const Heartbeats&) = delete;
  Heartbeats& operator=(const Heartbeats&) = delete;

  /// What is known of a rank: nothing (kUnknown) where no beats are exchanged with it, or no more.
  Presence presence(Rank peer) const;

 private:
  struct Line;

  void beat(std::map<Rank, Line> lines);
  /// Returns whether the line is still of use.
  bool try_attend(Rank peer, Line& line, TimePoint now);
  bool attend(Rank peer, Line& line, TimePoint now);

  PulseLimits limits_;
  Lost lost_;
  mutable Guarded<std::map<Rank, Presence>> known_;
  Fd stop_;
  std::thread thread_;
};

}  // namespace peal::transport
