// The state that a mailbox has for one peer: messages in both directions, and whether the peer is
// still there.
#pragma once

#include <cstddef>
#include <memory_resource>
#include <optional>
#include <utility>
#include <vector>

#include "peal/base/departure.h"
#include "peal/mail/eager_mail.h"
#include "peal/mail/frame_stream.h"
#include "peal/mail/large_mail.h"
#include "peal/mail/matching.h"
#include "peal/mail/placed_mail.h"

namespace peal::mail {

/// Threads: one at a time.
struct Peer {
  Peer(FrameStream s, PlacedMail p, Bytes eager_bound, std::pmr::memory_resource* memory)
      : stream(std::move(s)),
        eager_sends(eager_bound),
        eager_receives(eager_bound, memory),
        placed(std::move(p)) {}

  /// Moves frames in both directions as far as possible without waiting. Moves at most one piece of
  /// a large message, so that other users of the mailbox need not wait long. Returns the state of
  /// the incoming stream, or kMoved if anything left.
  FrameStream::State pump(FrameReader& reader);
  /// Copies a piece of a message in the peer's shared memory, and confirms each message that is
  /// complete. Returns whether anything was copied.
  bool copy_next_piece();
  /// The peer has accepted the message that was offered under this number.
  void accepted(std::uint64_t id);
  /// Forgets all messages, and does not touch their memory any more.
  void forget_messages();

  bool has_unsent() const { return can_receive() && stream.has_unsent(); }
  /// Whether to give credit back to the peer now.
  bool owes_credit() const { return can_receive() && eager_receives.owes(departure); }
  /// Whether the next `pump` or `copy_next_piece` moves something although no event has come.
  /// Combines the conditions of all steps that need no event.
  bool has_work() const {
    return owes_credit() || (can_receive() && eager_sends.can_post(stream)) ||
           (can_receive() && sends.can_post_piece(stream)) || placed.can_copy();
  }
  /// Whether a driver must watch this peer until its messages are done: there is work, or an event
  /// will come without any call.
  bool is_busy() const { return has_unsent() || has_receives() || has_work(); }
  /// Whether a message of this rank has not left, or has not been accepted.
  bool has_sends() const { return has_offers() || stream.has_borrowed(); }
  /// Whether an offered message of this rank has not been accepted.
  bool has_offers() const { return !sends.empty() || eager_sends.has_held(); }
  /// Whether a large message to this rank is in flight.
  bool has_receives() const { return !receives.empty() || placed.is_copying(); }
  bool is_gone() const { return departure || closed; }
  /// Whether the peer can still receive frames.
  bool can_receive() const { return !closed && !sending_closed; }

  FrameStream stream;
  bool is_linked = false;   // there is a link, and the peer gets every notice about the group
  bool needs_link = false;  // a message was sent or expected
  std::optional<Departure> departure;  // set by the peer's leave message
  bool sending_closed = false;         // the peer accepts no more bytes
  bool closed = false;                 // no more bytes come, or the bytes are invalid
  EagerSends eager_sends;
  EagerReceives eager_receives;
  LargeSends sends;
  LargeReceives receives;
  PlacedMail placed;
  // filled by the frame that is arriving
  std::optional<Receive> eager;
  std::optional<Matching::Position> arriving;
  std::vector<std::byte> text;

 private:
  /// Returns whether anything left.
  bool pump_out();
  /// Gives credit back to the peer if it is due. Returns whether it did.
  bool post_credit();
};

}  // namespace peal::mail
