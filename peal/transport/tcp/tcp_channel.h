// A channel whose streams are TCP connections, one to each peer. Connections may be added while the
// channel is in use (link/linker.h). process_transport.cpp makes it.
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
  struct Events {
    /// Begins to make the link to a rank. Called once for each rank that this rank sends to or
    /// receives from before there is a link.
    std::function<void(Rank)> want;
    /// Makes the error for a damaged stream to a rank. The text is the stream's.
    std::function<Error(Rank, std::string_view)> loss;
  };

  /// `peers`: the ranks that this channel reaches. `links`: the connections, proved, that are made
  /// already.
  /// Errors: resource.
  TcpChannel(std::span<const Rank> peers,
             std::map<Rank, std::unique_ptr<net::Stream>>&& links,
             Events events);
  /// Peers receive the bytes that were sent before, and then see `closed`.
  ~TcpChannel() override;

  Transfer try_send(Rank peer, std::span<const ConstPiece> pieces) override;
  Transfer try_receive(Rank peer, std::span<std::byte> into) override;
  bool try_flush(Rank peer) override;
  LinkState link_state(Rank peer) const override;
  Bytes unacknowledged(Rank peer) const override;
  void wait(std::span<const Interest> interests, Deadline deadline) override;
  void interrupt() noexcept override { bell_.ring(); }

  bool prepare(std::span<const Interest> interests, std::vector<pollfd>& entries) override;
  void finish(std::span<const pollfd> entries) override;

  /// The link to a rank that had none. Threads: any.
  void add(Rank peer, std::unique_ptr<net::Stream> link);
  /// The peer does not listen any more. Threads: any.
  void refuse(Rank peer) { end_without_link(peer, Fate::kRefused); }
  /// The link cannot be made; every use of the stream throws `error`. Threads: one at a time.
  void fail(Rank peer, const Error& error);
  /// For a peer that has vanished without notice: closes its stream in both directions. Threads:
  /// any.
  void cut_off(Rank peer);

  /// The peer's address and the congestion control towards it: "10.0.0.2:4711 by cubic". Without a
  /// link: that the peer has not accepted it, or nothing if no link was needed. Threads: any.
  std::string describe(Rank peer) const;

 private:
  struct Peer;
  /// What has become of a stream that has no link.
  enum class Fate : unsigned char { kOpen, kRefused, kCutOff, kFailed };
  struct Slot;

  Slot& slot(Rank rank) const;
  /// Null without a link.
  Peer* try_peer(Rank rank) const;
  /// What try_send and try_receive do without a link.
  Transfer without_link(Rank rank);
  void end_without_link(Rank rank, Fate fate);
  /// Runs `action`, which moves bytes to or from `rank`. Its errors then name the rank.
  template <class Action>
  auto attempt(Rank rank, Action action) const;

  BellState bell_state_{};
  Doorbell bell_{bell_state_, std::make_shared<Event>()};  // for interrupt, for new links, and for
                                                           // what is read ahead while the other
                                                           // thread sleeps
  std::vector<std::unique_ptr<Slot>> slots_;               // by rank; null if not reached
  const Events events_;

  // Used by the waiting thread.
  std::vector<pollfd> entries_;
  std::vector<Peer*> watched_;
};

}  // namespace peal::transport
