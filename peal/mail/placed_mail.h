// Large messages between this rank and a peer that do not pass the channel, because they lie in
// memory that both map (transport::Window). The sender names the place, and the receiver copies
// from there. The mailbox uses this class and sends the frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "peal/base/units.h"
#include "peal/mail/frame.h"
#include "peal/mail/matching.h"
#include "peal/mail/ticket.h"
#include "peal/transport/window/window.h"

namespace peal::mail {

/// For one peer. Threads: one at a time.
class PlacedMail {
 public:
  /// `window` may be null, and need not reach the peer: then no message is placed. A message larger
  /// than `streamed` is stored past the cache, because it would only evict other data.
  PlacedMail(Rank self, Rank peer, transport::Window* window, Bytes streamed);

  /// Where the peer can read a message of this rank; nothing if the message does not lie in this
  /// rank's arena.
  std::optional<transport::ArenaOffset> place(const std::byte* data, Bytes size);

  /// Adds the message that the peer offers to the messages to copy. Returns false if the message
  /// does not lie wholly in memory that the peer shares.
  bool start(const Frame& offer, Receive receive);
  bool is_copying() const { return !copies_.empty(); }
  /// Whether there is a piece to copy. False after the peer has withdrawn its memory: the remaining
  /// messages then wait for the report of the failure.
  bool can_copy() const { return is_copying() && !window_->has_withdrawn(peer_); }
  /// Copies a piece of the first message if possible. Returns whether it did.
  bool copy_next_piece() { return can_copy() && copy_piece(); }

  struct Copied {
    TicketPtr ticket;
    std::uint64_t id = 0;
  };
  /// The first message if it is complete; its sender must then be notified. A sender whose group
  /// has failed withdraws its offers before its call returns. What was read after that is not a
  /// message, so the result is nothing then.
  std::optional<Copied> take_copied();

  /// Forgets all receives, and does not touch their memory any more.
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
  transport::Window* window_;  // null if it does not reach the peer
  Bytes streamed_;
  std::deque<Copy> copies_;
};

}  // namespace peal::mail
