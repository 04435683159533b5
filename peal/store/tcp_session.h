// One client's connection at the server of a TCP store, as a state machine: handshake, request,
// perhaps a wait, reply, request, ... Owned and driven by TcpStoreServer.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/fd.h"
#include "peal/net/address.h"
#include "peal/net/frame.h"
#include "peal/net/handshake.h"
#include "peal/net/stream.h"
#include "peal/store/table.h"
#include "peal/store/tcp_protocol.h"

namespace peal::store {

/// Threads: one at a time. A session that has thrown is over: destroy it.
class TcpSession {
 public:
  /// `from`: the address of the client.
  TcpSession(Fd fd, const net::Address& from, const net::ProofContext& context, TimePoint now);

  /// Goes on after `interest` came true, without blocking: at most one request. Returns whether the
  /// table may have changed.
  /// Errors: usage (no proof, another sealing), mismatch (no request), peer_lost.
  bool advance(Table& table, TimePoint now);
  /// Answers a request that waits, if it can be answered now. Errors: peer_lost.
  void look_again(const Table& table, TimePoint now);

  int fd() const { return stream_ ? stream_->fd() : handshake_->fd(); }
  /// What to poll for.
  short interest() const;
  /// Whether `advance` has work that no poll shows: a request that was read ahead. The server must
  /// not sleep while a session has work.
  bool has_work() const;
  bool is_proved() const { return stream_ != nullptr; }
  /// What to say of one that is not proved in time.
  Error too_slow() const { return handshake_->too_slow(); }
  TimePoint since() const { return since_; }
  const net::Address& from() const { return from_; }
  /// What is to become of keys that do not exist when the session is over, in the order in which
  /// the client said so.
  const std::vector<WillRequest>& wills() const { return wills_; }
  /// When a request that waits has to be answered whatever is missing; the end of time for none.
  TimePoint due() const;

 private:
  /// A request that cannot be answered yet.
  struct Parked {
    std::vector<std::string> keys;
    TimePoint due;
    std::size_t next = 0;  // keys before it were seen: each change costs one look-up
  };

  void handle(const Request& request, Table& table, TimePoint now);
  void reply(const Reply& reply);
  void flush();
  /// Whether a part of the reply has not left.
  bool is_replying() const { return !out_.empty() || stream_->has_unsent(); }

  TimePoint since_;
  net::Address from_;
  std::optional<net::Handshake> handshake_;  // while it is not done
  std::unique_ptr<net::Stream> stream_;      // from then on
  net::FrameReader reader_{kMaxMessage, "store request"};
  std::optional<Parked> parked_;
  std::vector<WillRequest> wills_;
  std::string out_;
  std::size_t sent_ = 0;  // of out_
};

}  // namespace peal::store
