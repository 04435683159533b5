// Large messages of one peer, from their offer to their end: the sender keeps them until the peer
// has accepted them, and then sends them in pieces, or until it has copied them itself
// (placed_mail.h); the receiver knows where the pieces go. The mailbox, which uses it, carries the
// frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "peal/base/units.h"
#include "peal/engine/mail_frame.h"
#include "peal/engine/mail_stream.h"
#include "peal/engine/matching.h"
#include "peal/engine/ticket.h"

namespace peal::engine {

/// What the own rank has offered to one peer. Threads: one at a time.
class LargeSends {
 public:
  /// The memory is borrowed until the ticket has ended, or `clear`.
  void offer(std::uint64_t id, const TicketPtr& ticket, std::span<const std::byte> data);
  /// The peer's receive is there: the message is sent when those before it are.
  void accepted(std::uint64_t id);
  /// The same for a message that was offered elsewhere (EagerSends).
  void start(std::uint64_t id, const TicketPtr& ticket, std::span<const std::byte> data);
  /// The peer, `to`, has copied it.
  void taken(std::uint64_t id, Rank to);
  /// Whether a message has been accepted and the stream has nothing else to send: one piece at a
  /// time, so that the news of a failure never waits behind a whole message.
  bool can_post_piece(const MailStream& stream) const {
    return !accepted_.empty() && !stream.has_unsent();
  }
  /// Posts the next piece of the first accepted message if it can; returns whether it did.
  bool post_next_piece(MailStream& stream) { return can_post_piece(stream) && post_piece(stream); }

  bool empty() const { return offered_.empty() && accepted_.empty(); }
  void clear();

 private:
  struct Send {
    TicketPtr ticket;
    std::uint64_t id = 0;
    std::span<const std::byte> rest;
  };
  bool post_piece(MailStream& stream);

  std::map<std::uint64_t, Send> offered_;
  std::deque<Send> accepted_;
};

/// What the own rank has accepted of one peer. Threads: one at a time.
class LargeReceives {
 public:
  /// Returns whether it does; not where another message of this number is on its way.
  bool expect(std::uint64_t id, Receive receive) {
    return receives_.emplace(id, std::move(receive)).second;
  }
  /// What is wrong with a piece that the peer sends, in words; nothing if it is expected.
  std::optional<std::string> objection(const MailFrame& piece) const;
  /// Removes and returns the receive of a message that arrives whole, with this payload, and not in
  /// pieces. Nothing if no receive expects such a message.
  std::optional<Receive> take(std::uint64_t id, Bytes payload);
  /// Where an expected piece goes.
  std::span<std::byte> place_of(const MailFrame& piece);
  /// The piece has come, from `from`; with the last one its receive succeeds.
  void end_piece(const MailFrame& piece, Rank from);

  bool empty() const { return receives_.empty(); }
  void clear() { receives_.clear(); }

 private:
  std::map<std::uint64_t, Receive> receives_;
};

}  // namespace peal::engine
