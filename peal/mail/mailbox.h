// Point-to-point messages of one rank. Receives are matched with sends (matching.h).
//
// A small message is sent without waiting for its receive, and waits in the receiver's mailbox, up
// to a bound for each peer (eager_mail.h). A large message, or a small one beyond the bound, is
// offered first, and sent when a receive accepts the offer. So every frame can be read at once,
// and no message blocks another. A large message may lie in memory that the receiver maps
// (transport::Window). Then it does not pass the channel: the offer names its place, and the
// receiver copies it from there and confirms.
//
// The mailbox also carries notifications: that the group has failed, that a rank leaves. A state
// machine without a thread and without a clock; the native backend drives it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "peal/base/departure.h"
#include "peal/engine/progress_report.h"
#include "peal/mail/frame.h"
#include "peal/mail/frame_stream.h"
#include "peal/mail/group_notice.h"
#include "peal/mail/matching.h"
#include "peal/mail/message_memory.h"
#include "peal/mail/open_tickets.h"
#include "peal/mail/peer.h"
#include "peal/mail/self_mail.h"
#include "peal/mail/ticket.h"
#include "peal/transport/transport.h"

namespace peal::mail {

/// Threads: one at a time.
class Mailbox final : private FrameReader {
 public:
  /// What has happened to the group. Called from within the other methods. The owner must then call
  /// `fail`, which also ends the tickets that are concerned.
  struct Events {
    std::function<void(const Error&)> failed;  // a peer reports it, or two messages do not fit
    std::function<void(Rank)> lost;            // a peer's stream ended without a leave message
    /// A peer sends bytes that are invalid in peal's protocol.
    std::function<void(Rank, const std::string&)> damaged;
    /// A peer has left, and there are open messages with it. The error describes them.
    std::function<void(Rank, Departure, const Error&)> left;
    /// A peer that waits for this rank tells which operation it is in.
    std::function<void(Rank, const engine::ProgressReport&)> report;
  };

  /// `bound`: on small messages, the same on every rank; by default `eager_bound(ranks)`.
  Mailbox(Rank self,
          int ranks,
          transport::Transport& transport,
          Events events,
          std::optional<Bytes> bound = std::nullopt);

  /// Sends a small message to another rank if no message waits before it and the bound allows it.
  /// Otherwise, and on any error, it returns false and does nothing: call `send` then, which
  /// reports the error.
  bool send_at_once(const Envelope& envelope, const std::byte* data);
  /// The memory is borrowed until the ticket has ended. A small message leaves at once if it can.
  /// A message to this rank itself is copied, and counts against the bound at any size. If no such
  /// message is kept, one of any size is accepted.
  void send(const TicketPtr& ticket, const Envelope& envelope, const std::byte* data);
  void receive(const TicketPtr& ticket, const Envelope& envelope, std::byte* data);

  /// Moves what can be moved without waiting. Returns whether anything moved.
  bool advance();
  /// The same for one peer. Cost: independent of the number of ranks.
  bool advance(Rank peer) {
    return peer != self_ && !at(peer).closed && (at(peer).is_linked || begin_link(peer)) &&
           move(peer);
  }

  /// Adds what a driver can sleep on.
  void add_interests(std::vector<transport::Interest>& interests) const;

  /// Fails every ticket, also later ones, and releases all borrowed memory. Discards what arrives
  /// from now on.
  void fail(const Error& cause);
  bool has_failed() const { return failure_.has_value(); }
  /// Reports to every peer that the group has failed, also if its stream is damaged. Call after
  /// `fail`.
  void tell_abort(const Error& cause);
  /// Tells a peer which operation this rank is in, if the stream is free.
  void send_progress_report(Rank peer, const engine::ProgressReport& report);
  /// Tells every peer that this rank will start no more messages and receive none. Its earlier
  /// offers remain valid. A peer that is linked later gets the notice then, as that of
  /// `tell_abort`.
  void send_leave(Departure departure);
  /// Whether the next `advance` moves something although no event has come. A driver that sleeps
  /// while this is true sleeps forever.
  bool has_work() const;
  bool has_work(Rank peer) const { return at(peer).has_work(); }
  /// Whether a driver must stay with the mailbox: it has work, or a frame waits for its stream, or
  /// a large message to this rank is in flight.
  bool is_busy() const;
  bool is_busy(Rank peer) const { return at(peer).is_busy(); }
  /// Whether everything that this rank has sent to ranks that are still there has left, and its
  /// offers have been accepted.
  bool is_sent() const;
  /// How many of the bytes that have left may not reach peers if this rank leaves now.
  Bytes unacknowledged() const;

  /// How the peer has left; nothing before its leave message.
  std::optional<Departure> departure(Rank peer) const { return at(peer).departure; }

  /// The tickets that have not ended, for their deadlines. The caller may forget an ended ticket.
  OpenTickets& open_tickets() { return open_; }
  /// If the bound holds back the message of this ticket: the earlier messages for which the
  /// receiver has not given back credit. Otherwise nothing.
  std::optional<MessageCount> held_behind(const Ticket& ticket) const;

 private:
  bool move(Rank rank);
  /// For a peer without a link until now: whether to use the link, because it was made, or because
  /// messages need it.
  bool begin_link(Rank peer);
  void notify_all(GroupNotice notice);
  std::span<std::byte> begin_frame(Rank from, const Frame& frame) override;
  void end_frame(Rank from, const Frame& frame) override;
  std::span<std::byte> begin_message(Rank from, const Frame& frame);
  std::span<std::byte> begin_offered(Rank from, const Frame& frame);
  std::span<std::byte> begin_arrival(Rank from, Matching::Position arrival);
  void keep_offer(Rank from, const Frame& frame);
  void end_message(Rank from);
  std::span<std::byte> begin_piece(Rank from, const Frame& frame);

  void meet(Matching::Position arrival, Receive receive);
  void accept(Rank from, const Frame& offer, Receive receive);
  bool fits(const Receive& receive, Rank from, const Frame& frame);
  void received(Rank from, Bytes payload);
  void offer(const TicketPtr& ticket, Frame frame, Rank to, std::span<const std::byte> data);
  void send_to_self(const TicketPtr& ticket, const Frame& frame, std::span<const std::byte> data);

  void on_stream_end(Rank peer);
  void on_leave(Rank peer, Departure departure);
  void miss(Rank peer);
  void close_damaged(Rank peer, const std::string& how);
  bool all_others_are_gone() const;
  /// Whether the peer is another rank and can still receive frames.
  bool can_receive(Rank peer) const { return peer != self_ && at(peer).can_receive(); }

  Peer& at(Rank peer) { return peers_[static_cast<std::size_t>(peer)]; }
  const Peer& at(Rank peer) const { return peers_[static_cast<std::size_t>(peer)]; }

  Rank self_;
  transport::Transport& transport_;
  Events events_;
  MessageMemory memory_;  // of waiting messages; declared before its users
  std::vector<Peer> peers_;
  Matching matching_{&memory_};
  SelfMail self_mail_;
  OpenTickets open_;
  std::uint64_t next_id_ = 1;
  std::optional<Error> failure_;
  std::vector<GroupNotice> notices_;  // for every peer, in their order
};

}  // namespace peal::mail
