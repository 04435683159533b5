// The large messages of one peer, from offer to end. The sender keeps a message until the peer has
// accepted it, and then sends it in pieces; or the peer copies the message itself (placed_mail.h).
// The receiver knows where the pieces go. The mailbox uses these classes and sends the frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "peal/base/units.h"
#include "peal/mail/frame.h"
#include "peal/mail/frame_stream.h"
#include "peal/mail/matching.h"
#include "peal/mail/ticket.h"

namespace peal::mail {

/// The messages that this rank has offered to one peer. Threads: one at a time.
class LargeSends {
 public:
  /// The memory is borrowed until the ticket has ended, or `clear`.
  void offer(std::uint64_t id, const TicketPtr& ticket, std::span<const std::byte> data);
  /// The peer's receive is there. The message is sent after the messages accepted before it.
  void accepted(std::uint64_t id);
  /// The same for a message that EagerSends has offered.
  void start(std::uint64_t id, const TicketPtr& ticket, std::span<const std::byte> data);
  /// The peer, `to`, has copied the message.
  void taken(std::uint64_t id, Rank to);
  /// Whether a message has been accepted and the stream has nothing else to send. The stream gets
  /// one piece at a time, so that the report of a failure never waits behind a whole message.
  bool can_post_piece(const FrameStream& stream) const {
    return !accepted_.empty() && !stream.has_unsent();
  }
  /// Posts the next piece of the first accepted message if possible. Returns whether it did.
  bool post_next_piece(FrameStream& stream) { return can_post_piece(stream) && post_piece(stream); }

  bool empty() const { return offered_.empty() && accepted_.empty(); }
  void clear();

 private:
  struct Send {
    TicketPtr ticket;
    std::uint64_t id = 0;
    std::span<const std::byte> rest;
  };
  bool post_piece(FrameStream& stream);

  std::map<std::uint64_t, Send> offered_;
  std::deque<Send> accepted_;
};

/// The messages that this rank has accepted from one peer. Threads: one at a time.
class LargeReceives {
 public:
  /// Expects the pieces of a message. Returns false if another message has this number.
  bool expect(std::uint64_t id, Receive receive) {
    return receives_.emplace(id, std::move(receive)).second;
  }
  /// What is wrong with a piece from the peer; nothing if the piece is expected.
  std::optional<std::string> objection(const Frame& piece) const;
  /// Removes and returns the receive of a message that arrives whole, with this payload. Nothing if
  /// no receive expects such a message.
  std::optional<Receive> take(std::uint64_t id, Bytes payload);
  /// Where an expected piece goes.
  std::span<std::byte> place_of(const Frame& piece);
  /// The piece from `from` has arrived. With the last piece, its receive succeeds.
  void end_piece(const Frame& piece, Rank from);

  bool empty() const { return receives_.empty(); }
  void clear() { receives_.clear(); }

 private:
  std::map<std::uint64_t, Receive> receives_;
};

}  // namespace peal::mail
