// One client's connection at the server of a TCP store, as a state machine: handshake, request,
// perhaps a wait, reply, request, ... Owned and driven by TcpStoreServer.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "peal/base/clock.h"
#include "peal/net/address.h"
#include "peal/net/frame.h"
#include "peal/net/handshake.h"
#include "peal/net/stream.h"
#include "peal/store/table.h"
#include "peal/store/tcp_protocol.h"
#include "peal/system/fd.h"

namespace peal::store {

/// Threads: one at a time. A session that has thrown is over: destroy it.
class TcpSession {
 public:
  /// `from`: the address of the client.
  TcpSession(Fd fd, const net::Address& from, const net::ProofContext& context, TimePoint now);

  /// Continues after poll has reported `interest`. Never blocks, and handles at most one request.
  /// Returns whether the table may have changed.
  /// Errors: usage (no proof, another protection), mismatch (not a request), peer_lost.
  bool advance(Table& table, TimePoint now);
  /// Answers the parked request, if it can be answered now. Errors: peer_lost.
  void look_again(const Table& table, TimePoint now);

  int fd() const { return stream_ ? stream_->fd() : handshake_->fd(); }
  /// What to poll for.
  short interest() const;
  /// Whether a request was read ahead, which poll does not report. The server must not sleep while
  /// a session has such work.
  bool has_work() const;
  bool is_proved() const { return stream_ != nullptr; }
  /// The error for a client that does not prove the secret in time.
  Error too_slow() const { return handshake_->too_slow(); }
  TimePoint since() const { return since_; }
  const net::Address& from() const { return from_; }
  /// The client's last wills, in the order in which it left them.
  const std::vector<WillRequest>& last_wills() const { return last_wills_; }
  /// When the parked request must be answered even if keys are missing. TimePoint::max() if no
  /// request is parked.
  TimePoint due() const;

 private:
  /// A request that cannot be answered yet.
  struct Parked {
    std::vector<std::string> keys;
    TimePoint due;
    std::size_t next = 0;  // keys before it were found, so a change costs one look-up
  };

  void handle(const Request& request, Table& table, TimePoint now);
  void reply(const Reply& reply);
  void flush();
  /// Whether a part of the reply has not been sent.
  bool is_replying() const { return !out_.empty() || stream_->has_unsent(); }

  TimePoint since_;
  net::Address from_;
  std::optional<net::Handshake> handshake_;  // until it is done
  std::unique_ptr<net::Stream> stream_;      // after the handshake
  net::FrameReader reader_{kMaxMessage, "store request"};
  std::optional<Parked> parked_;
  std::vector<WillRequest> last_wills_;
  std::string out_;
  std::size_t sent_ = 0;  // of out_
};

}  // namespace peal::store
