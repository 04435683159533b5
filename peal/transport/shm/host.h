// The ranks of one host as processes that share memory: the memory that each rank offers, and the
// channels and the window in that memory. connect.cpp makes it once the ranks have unix connections
// to each other.
//
// Each rank owns two files without a name: a segment (segment_layout.h) with the rings for its
// incoming bytes, and the arena, which grows. The rank sends their descriptors, and the eventfds
// that wake it, to every other rank over the unix connections. Afterwards a rank keeps one
// descriptor for a group, that of its arena. The descriptors of a pair of processes are kept once
// for all groups (host_peers.h). A group that reaches other hosts keeps eventfds of its own,
// because its threads also sleep on sockets.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/units.h"
#include "peal/system/fd.h"
#include "peal/transport/liveness/presence.h"
#include "peal/transport/shm/host_peers.h"
#include "peal/transport/shm/ring_channel.h"
#include "peal/transport/shm/segment_layout.h"
#include "peal/transport/window/window.h"

namespace peal::transport {

struct HostOptions {
  Rank self = 0;
  std::vector<Rank> ranks;  // of the group that are on this host, this rank included; ascending
  SegmentLayout layout;     // except `ranks`, which follows from the field above
  Bytes arena;              // address space for each rank; less if the process may not have it
  /// Whether the group has ranks on other hosts, over sockets. The same on all ranks.
  enum class Others : unsigned char { kNone, kOnOtherHosts } others = Others::kNone;
  std::shared_ptr<HostPeers> peers;  // of the rank `self`
};

/// Threads: one at a time, unless a method says otherwise.
class Host final {
 public:
  /// Exchanges memory with the other ranks. `connections`: proved unix connections to each of them.
  /// The host takes them over on success, and leaves them open on failure.
  /// Errors: resource, peer_lost, timeout, mismatch (the ranks' options differ).
  Host(const HostOptions& options, std::map<Rank, Fd>& connections, Deadline deadline);
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  /// The host outlives the channel. Call it once for each kind. If all ranks are on this host, the
  /// mail thread sleeps for the mail channel, and several groups ring its event.
  std::unique_ptr<RingChannel> make_channel(ChannelKind kind);
  MailThread& mail_thread() { return peers_->mail_thread(); }

  /// What is known of the process of another rank of the host. Threads: any.
  Presence presence(Rank rank) const;

  /// Covers all ranks of the host, which are neighbours in the group. The window keeps the memory
  /// alive, even after the host is destroyed.
  Window make_window() const;

 private:
  struct Memory;
  struct Neighbour;

  std::shared_ptr<Doorbell> make_own_bell(ChannelKind kind, HostOptions::Others others) const;
  void offer_to(Neighbour& neighbour, int connection, Deadline deadline) const;
  void accept_from(Rank rank, Neighbour& neighbour, int connection, Deadline deadline);
  void keep(Neighbour& neighbour, Fd connection);
  bool has_own_events() const { return bells_[0]->event() != nullptr; }
  RingMemory ring(ChannelKind kind, Rank from, Rank to, Rank peer) const;

  const std::shared_ptr<HostPeers> peers_;
  std::shared_ptr<Memory> memory_;
  std::array<std::shared_ptr<Doorbell>, kChannelKinds.size()> bells_;
  std::map<Rank, std::unique_ptr<Neighbour>> neighbours_;
};

}  // namespace peal::transport
