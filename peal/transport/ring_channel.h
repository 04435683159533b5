// A channel whose streams are rings in memory that the ranks of a host share. memory/ and shm/ make
// them.
#pragma once

#include <poll.h>

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "peal/base/per_process.h"
#include "peal/base/units.h"
#include "peal/transport/doorbell.h"
#include "peal/transport/peer_process.h"
#include "peal/transport/pollable.h"
#include "peal/transport/ring.h"

namespace peal::transport {

/// What joins a rank to one peer.
struct RingLink {
  RingMemory outgoing;
  RingMemory incoming;
  std::shared_ptr<Doorbell> bell;  // the peer's
  /// Null if the peer is a thread, which cannot end without a farewell.
  std::shared_ptr<PeerProcess> process = nullptr;
};

class RingChannel final : public PollableChannel {
 public:
  /// `links` name their peers and leave out those who are reached in another way. The memory
  /// outlives the channel. If the bell `own` has no event, `wait` sleeps on its futex. Then do not
  /// call the functions for a sleep on more than this channel.
  RingChannel(std::shared_ptr<Doorbell> own, const std::vector<RingLink>& links);
  /// Peers take what was sent before and then see `closed`. In a forked child it does nothing.
  ~RingChannel() override;

  Transfer try_send(Rank peer, std::span<const ConstPiece> pieces) override;
  Transfer try_receive(Rank peer, std::span<std::byte> into) override;
  /// What lies in a ring outlives its writer.
  bool try_flush(Rank) override { return true; }  // nothing is ever held
  Bytes unacknowledged(Rank) const override { return 0_B; }
  void wait(std::span<const Interest> interests, Deadline deadline) override;
  void interrupt() noexcept override {
    interrupted_.store(true);
    own_->ring();
  }

  bool prepare(std::span<const Interest> interests, std::vector<pollfd>& entries) override;
  void finish(std::span<const pollfd> entries) override;

  /// Whether one of the interests is ready. Ignores `interrupt`. Threads: the one that may wait.
  bool is_any_ready(std::span<const Interest> interests) const;

  // ---- for a thread that sleeps on the event itself, for several channels (rounds.h)
  /// Call before the sleep. Returns false if the thread need not sleep: one of `interests` is
  /// ready, or `interrupt` was called since `get_up`.
  bool lie_down(std::span<const Interest> interests);
  /// Call during the sleep, when the event was rung or a process has ended. Returns whether a peer
  /// has rung, one of the interests is ready, or `interrupt` was called. If not, the sleep goes on.
  bool may_go_on();
  /// Call after the sleep.
  void get_up();

 private:
  struct Peer;

  Peer& peer(Rank rank) const {
    const auto index = static_cast<std::size_t>(rank);
    if (rank < 0 || index >= peers_.size() || !peers_[index]) refuse(rank);
    return *peers_[index];
  }
  [[noreturn]] static void refuse(Rank rank);
  void wait_by_futex(std::span<const Interest> interests, Deadline deadline);

  const OwnerProcess owner_;
  std::shared_ptr<Doorbell> own_;
  std::vector<std::unique_ptr<Peer>> peers_;  // by rank
  std::atomic<bool> interrupted_ = false;     // since the last sleep

  // The waiting thread's.
  std::vector<pollfd> entries_;
  std::vector<Peer*> watched_;
  std::vector<Interest> lain_down_for_;
};

}  // namespace peal::transport
