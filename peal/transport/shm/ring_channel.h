// A channel whose streams are rings in memory that the ranks of a host share. memory/ and shm/ make
// them.
#pragma once

#include <poll.h>

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "peal/base/units.h"
#include "peal/system/per_process.h"
#include "peal/transport/liveness/peer_process.h"
#include "peal/transport/pollable.h"
#include "peal/transport/shm/doorbell.h"
#include "peal/transport/shm/ring.h"

namespace peal::transport {

/// The connection of a rank to one peer.
struct RingLink {
  RingMemory outgoing;
  RingMemory incoming;
  std::shared_ptr<Doorbell> bell;  // the peer's
  /// Null if the peer is a thread: a thread cannot end without `leave`.
  std::shared_ptr<PeerProcess> process = nullptr;
};

class RingChannel final : public PollableChannel {
 public:
  /// `links` name their peers, and omit peers that are reached in another way. The memory outlives
  /// the channel. If the bell `own` has no event, `wait` sleeps on its futex; then the functions
  /// for a sleep on several channels must not be called.
  RingChannel(std::shared_ptr<Doorbell> own, const std::vector<RingLink>& links);
  /// Peers receive the bytes that were sent before, and then see `closed`. Does nothing in a forked
  /// child.
  ~RingChannel() override;

  Transfer try_send(Rank peer, std::span<const ConstPiece> pieces) override;
  Transfer try_receive(Rank peer, std::span<std::byte> into) override;
  /// Bytes in a ring outlive their writer.
  bool try_flush(Rank) override { return true; }  // bytes are never held back
  LinkState link_state(Rank) const override { return LinkState::kMade; }
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

  // ---- for a thread that sleeps on the event itself, for several channels (mail_thread.h)
  /// Call before the sleep. Returns false if the thread need not sleep: one of `interests` is
  /// ready, or `interrupt` was called since `end_sleep`.
  bool announce_sleep(std::span<const Interest> interests);
  /// Call during the sleep, when the event was rung or a process has ended. Returns whether a peer
  /// has rung, one of the interests is ready, or `interrupt` was called. If not, the sleep goes on.
  bool should_wake();
  /// Call after the sleep.
  void end_sleep();

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

  // Used by the waiting thread.
  std::vector<pollfd> entries_;
  std::vector<Peer*> watched_;
  std::vector<Interest> sleep_interests_;
};

}  // namespace peal::transport
