// Point-to-point messages of one rank: receives meet sends (matching.h).
//
// A small message is sent without waiting for its receive, and waits in the receiver's mailbox, up
// to a bound for each peer (eager_mail.h). A large message, or a small one beyond the bound, is
// offered first, and sent when a receive accepts the offer. So every frame can be taken at once,
// and no message blocks another. A large message may lie in memory that the receiver maps
// (transport::Window). Then it does not pass the channel: the offer names its place, and the
// receiver copies it from there and confirms.
//
// The mailbox also carries the news that the group has failed, and farewells. It is a state machine
// that owns no thread and reads no clock; the native backend drives it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "peal/base/departure.h"
#include "peal/engine/mail_frame.h"
#include "peal/engine/mail_memory.h"
#include "peal/engine/mail_peer.h"
#include "peal/engine/mail_stream.h"
#include "peal/engine/matching.h"
#include "peal/engine/open_tickets.h"
#include "peal/engine/self_mail.h"
#include "peal/engine/standing.h"
#include "peal/engine/ticket.h"
#include "peal/transport/transport.h"

namespace peal::engine {

/// Threads: one at a time.
class Mailbox final : private MailReader {
 public:
  /// Called from within the other methods: what has happened to the group. The answer is `fail`,
  /// which ends the tickets that it concerns too.
  struct Events {
    std::function<void(const Error&)> failed;  // a peer says so, or two messages do not fit
    std::function<void(Rank)> lost;            // a peer's stream ended without a farewell
    /// A peer has left with whom messages are open, and this is what there is to say of it here.
    std::function<void(Rank, Departure, const Error&)> left;
    /// A peer, which waits for this rank, says where it stands.
    std::function<void(Rank, const Standing&)> standing;
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

  /// Moves what can be moved without waiting; returns whether anything did.
  bool advance();
  /// The same between this rank and one other. Cost: no matter how many ranks there are.
  bool advance(Rank peer) { return peer != self_ && !at(peer).closed && move(peer); }

  /// What to sleep on.
  void add_interests(std::vector<transport::Interest>& interests) const;

  /// Fails every ticket, also those to come, and lets go of all borrowed memory; what arrives from
  /// now on is thrown away.
  void fail(const Error& cause);
  bool has_failed() const { return failure_.has_value(); }
  /// Tells every peer that the group has failed, also one whose stream is damaged. After `fail`.
  void tell_abort(const Error& cause);
  /// Tells a peer where this rank stands, if nothing is in the way.
  void tell_standing(Rank peer, const Standing& standing);
  /// Tells every peer that this rank will start no more messages and receive none. What it has
  /// offered still stands.
  void say_farewell(Departure departure);
  /// Whether the next `advance` moves something though no event has come. A driver that sleeps
  /// while this holds sleeps for ever.
  bool has_work() const;
  bool has_work(Rank peer) const { return at(peer).has_work(); }
  /// Whether a driver must stay with the mailbox: it has work, or a frame waits until a stream can
  /// take it, or a large message is on its way to this rank.
  bool is_busy() const;
  bool is_busy(Rank peer) const { return at(peer).is_busy(); }
  /// Whether everything that this rank has to send to those who are still there has left it, and
  /// what it has offered was taken.
  bool is_sent() const;
  /// How much of what has left may not reach them if this rank leaves now.
  Bytes unacknowledged() const;

  /// How the peer has left; nothing while it has not said farewell.
  std::optional<Departure> departure(Rank peer) const { return at(peer).departure; }

  /// The tickets that have not ended, for their deadlines. The caller may forget an ended ticket.
  OpenTickets& open_tickets() { return open_; }
  /// If the bound holds back the message of this ticket: the messages sent before it that the
  /// receiver has not given back. Otherwise nothing.
  std::optional<MailCount> held_behind(const Ticket& ticket) const;

 private:
  bool move(Rank rank);
  std::span<std::byte> begin_frame(Rank from, const MailFrame& frame) override;
  void end_frame(Rank from, const MailFrame& frame) override;
  std::span<std::byte> begin_message(Rank from, const MailFrame& frame);
  std::span<std::byte> begin_offered(Rank from, const MailFrame& frame);
  std::span<std::byte> begin_arrival(Rank from, Matching::Place arrival);
  void keep_offer(Rank from, const MailFrame& frame);
  void end_message(Rank from);
  std::span<std::byte> begin_piece(Rank from, const MailFrame& frame);

  void meet(Matching::Place arrival, Receive receive);
  void accept(Rank from, const MailFrame& offer, Receive receive);
  bool fits(const Receive& receive, Rank from, const MailFrame& frame);
  void received(Rank from, Bytes payload);
  void offer(const TicketPtr& ticket, MailFrame frame, Rank to, std::span<const std::byte> data);
  void send_to_self(const TicketPtr& ticket,
                    const MailFrame& frame,
                    std::span<const std::byte> data);

  void on_stream_end(Rank peer);
  void on_farewell(Rank peer, Departure departure);
  void miss(Rank peer);
  void close_damaged(Rank peer, const std::string& how);
  bool all_others_are_gone() const;
  /// Whether the peer is another rank and can still receive frames.
  bool hears(Rank peer) const { return peer != self_ && at(peer).hears(); }

  MailPeer& at(Rank peer) { return peers_[static_cast<std::size_t>(peer)]; }
  const MailPeer& at(Rank peer) const { return peers_[static_cast<std::size_t>(peer)]; }

  Rank self_;
  transport::Transport& transport_;
  Events events_;
  MailMemory memory_;  // of waiting messages; declared before its users
  std::vector<MailPeer> peers_;
  Matching matching_{&memory_};
  SelfMail self_mail_;
  OpenTickets open_;
  std::uint64_t next_id_ = 1;
  std::optional<Error> failure_;
};

}  // namespace peal::engine
