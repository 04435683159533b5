// Large messages between this rank and a peer that do not pass the channel, since they lie in
// memory which both map (transport::Window): the sender says where, and the receiver copies them
// from there. The mailbox, which uses it, carries the frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "peal/base/units.h"
#include "peal/engine/mail_frame.h"
#include "peal/engine/matching.h"
#include "peal/engine/ticket.h"
#include "peal/transport/window.h"

namespace peal::engine {

/// Of one peer. Threads: one at a time.
class PlacedMail {
 public:
  /// `window` may be null, and need not reach the peer: then no message is one of these. One that
  /// is larger than `streamed` is stored past the cache, which it would only empty.
  PlacedMail(Rank self, Rank peer, transport::Window* window, Bytes streamed);

  /// Where the peer can read a message of the own rank; nothing if it does not lie in the own
  /// arena.
  std::optional<transport::ArenaOffset> place(const std::byte* data, Bytes size);

  /// Adds the message that the peer offers to the messages to copy. Returns false if the message
  /// does not lie wholly in memory that the peer shares.
  bool start(const MailFrame& offer, Receive receive);
  bool is_copying() const { return !copies_.empty(); }
  /// Whether there is a piece to copy. Never once the peer has withdrawn: the messages that are
  /// left then wait for the news of why.
  bool can_copy() const { return is_copying() && !window_->has_withdrawn(peer_); }
  /// Copies a piece of the first message if it can; returns whether it did.
  bool copy_next_piece() { return can_copy() && copy_piece(); }

  struct Copied {
    TicketPtr ticket;
    std::uint64_t id = 0;
  };
  /// The first one, if it is here whole: its sender waits to be told. A sender whose group has
  /// failed withdraws what it has offered before its call returns, and what was read after that is
  /// no message; so nothing then.
  std::optional<Copied> take_copied();

  /// Forgets all receives: their memory is not touched any more.
  void clear() { copies_.clear(); }

 private:
  struct Copy {
    Receive receive;
    std::uint64_t id = 0;
    const std::byte* from = nullptr;
  };
  bool copy_piece();

  Rank self_;
  Rank peer_;
  transport::Window* window_;  // null where it does not reach the peer
  Bytes streamed_;
  std::deque<Copy> copies_;
};

}  // namespace peal::engine
