// The ranks of one host as processes that share memory: what each offers, and the channels and the
// window that lie in it. connect.cpp makes it once the ranks have unix connections to each other.
//
// Each rank owns two files without a name: a segment (segment_layout.h) with the rings through
// which bytes come in to it, and the arena, which grows. Their descriptors, and the eventfds that
// wake it, go to every other rank over the unix connections.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/fd.h"
#include "peal/base/units.h"
#include "peal/transport/presence.h"
#include "peal/transport/ring_channel.h"
#include "peal/transport/segment_layout.h"
#include "peal/transport/window.h"

namespace peal::transport {

struct HostOptions {
  Rank self = 0;
  std::vector<Rank> ranks;  // of the group that are on this host, the own one included; ascending
  SegmentLayout layout;     // but for its `ranks`, which follows from the above
  Bytes arena;              // address space for each rank; less where the process may not have it
};

class Host final {
 public:
  /// Exchanges memory with the others. `connections` are unix connections to each of them, proved;
  /// the host takes them over if all goes well, and else leaves them open.
  /// Errors: resource, peer_lost, timeout, mismatch (the ranks' options differ).
  Host(const HostOptions& options, std::map<Rank, Fd>& connections, Deadline deadline);
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  /// Outlived by the host. Each kind once.
  std::unique_ptr<RingChannel> make_channel(ChannelKind kind);

  /// What is known of the process of another rank of the host. Threads: any.
  Presence presence(Rank rank) const;

  /// Over all ranks of the host, which are neighbours in the group. Keeps the memory alive beyond
  /// the host if need be.
  Window make_window() const;

 private:
  struct Memory;
  struct Neighbour;

  void offer_to(int connection, Deadline deadline) const;
  std::unique_ptr<Neighbour> accept_from(Rank rank, int connection, Deadline deadline);
  RingMemory ring(ChannelKind kind, Rank from, Rank to, Rank peer) const;

  std::shared_ptr<Memory> memory_;
  std::array<std::shared_ptr<Doorbell>, kChannelKinds.size()> bells_;
  std::map<Rank, std::unique_ptr<Neighbour>> neighbours_;
};

}  // namespace peal::transport
