// A channel that reaches some ranks by shared memory, inside the host, and the rest by TCP.
// process_transport.cpp makes it.
#pragma once

#include <poll.h>

#include <memory>
#include <span>
#include <vector>

#include "peal/transport/pollable.h"

namespace peal::transport {

class MixedChannel final : public PollableChannel {
 public:
  /// `near_ranks[r]` says whether rank r is reached by `near`.
  MixedChannel(std::unique_ptr<PollableChannel> near,
               std::unique_ptr<PollableChannel> far,
               std::vector<bool> near_ranks);

  Transfer try_send(Rank peer, std::span<const ConstPiece> pieces) override;
  Transfer try_receive(Rank peer, std::span<std::byte> into) override;
  bool try_flush(Rank peer) override { return route(peer).try_flush(peer); }
  LinkState link_state(Rank peer) const override { return route(peer).link_state(peer); }
  Bytes unacknowledged(Rank peer) const override { return route(peer).unacknowledged(peer); }
  void wait(std::span<const Interest> interests, Deadline deadline) override;
  /// Every wait covers both channels, so waking one of them is enough.
  void interrupt() noexcept override { near_->interrupt(); }

  bool prepare(std::span<const Interest> interests, std::vector<pollfd>& entries) override;
  void finish(std::span<const pollfd> entries) override;

 private:
  bool is_near(Rank peer) const;
  PollableChannel& route(Rank peer) const { return is_near(peer) ? *near_ : *far_; }

  std::unique_ptr<PollableChannel> near_;
  std::unique_ptr<PollableChannel> far_;
  std::vector<bool> near_ranks_;

  // Used by the waiting thread.
  std::vector<pollfd> entries_;
  std::vector<Interest> near_interests_;
  std::vector<Interest> far_interests_;
  std::size_t near_entries_ = 0;
};

}  // namespace peal::transport
