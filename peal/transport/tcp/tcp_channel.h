// A channel whose streams are TCP connections, one to each peer. process_transport.cpp makes it.
#pragma once

#include <poll.h>

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "peal/base/error.h"
#include "peal/net/stream.h"
#include "peal/transport/pollable.h"
#include "peal/transport/shm/doorbell.h"

namespace peal::transport {

class TcpChannel final : public PollableChannel {
 public:
  /// Makes the error for a damaged stream to a rank. The text is the stream's.
  using Loss = std::function<Error(Rank, std::string_view)>;

  /// `connections`: proved, to other ranks. Throws Error(resource).
  TcpChannel(std::map<Rank, std::unique_ptr<net::Stream>>&& connections, Loss loss);
  /// Peers receive the bytes that were sent before, and then see `closed`.
  ~TcpChannel() override;

  Transfer try_send(Rank peer, std::span<const ConstPiece> pieces) override;
  Transfer try_receive(Rank peer, std::span<std::byte> into) override;
  bool try_flush(Rank peer) override;
  Bytes unacknowledged(Rank peer) const override;
  void wait(std::span<const Interest> interests, Deadline deadline) override;
  void interrupt() noexcept override { bell_.ring(); }

  bool prepare(std::span<const Interest> interests, std::vector<pollfd>& entries) override;
  void finish(std::span<const pollfd> entries) override;

  /// For a peer that has vanished without notice: closes its stream in both directions. Threads:
  /// any.
  void cut_off(Rank peer);

  /// The peer's address and the congestion control towards it: "10.0.0.2:4711 by cubic".
  std::string describe(Rank peer) const;

 private:
  struct Peer;

  Peer& peer(Rank rank) const;
  /// Runs `action`, which moves bytes to or from `rank`. Its errors then name the rank.
  template <class Action>
  auto attempt(Rank rank, Action action) const;

  BellState bell_state_{};
  Doorbell bell_{bell_state_, std::make_shared<Event>()};  // for interrupt, and for what is read
                                                           // ahead while the other thread sleeps
  std::vector<std::unique_ptr<Peer>> peers_;               // by rank
  const Loss loss_;

  // Used by the waiting thread.
  std::vector<pollfd> entries_;
  std::vector<Peer*> watched_;
};

}  // namespace peal::transport
