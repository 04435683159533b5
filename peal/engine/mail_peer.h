// What a mailbox has to do with one peer: what goes to it and comes from it, and whether it is
// still there.
#pragma once

#include <cstddef>
#include <memory_resource>
#include <optional>
#include <utility>
#include <vector>

#include "peal/base/departure.h"
#include "peal/engine/eager_mail.h"
#include "peal/engine/large_mail.h"
#include "peal/engine/mail_stream.h"
#include "peal/engine/matching.h"
#include "peal/engine/placed_mail.h"

namespace peal::engine {

/// Threads: one at a time.
struct MailPeer {
  MailPeer(MailStream s, PlacedMail p, Bytes eager_bound, std::pmr::memory_resource* memory)
      : stream(std::move(s)),
        eager_sends(eager_bound),
        eager_receives(eager_bound, memory),
        placed(std::move(p)) {}

  /// Moves frames both ways as far as they go without waiting, but no more than a piece of a large
  /// message: whoever else needs the mailbox waits no longer. What the stream says of what comes
  /// in; kMoved, too, if anything left.
  MailStream::State pump(MailReader& reader);
  /// Copies a piece of what the peer has placed, and tells it when a message is here whole. Returns
  /// whether anything was copied.
  bool copy_next_piece();
  /// The peer has accepted the message that was offered under this number.
  void accepted(std::uint64_t id);
  /// Forgets all messages: their memory is not touched any more.
  void let_go();

  bool has_unsent() const { return hears() && stream.has_unsent(); }
  /// Whether to give credit back to the peer now.
  bool owes_credit() const { return hears() && eager_receives.owes(departure.has_value()); }
  /// Whether the next `pump` or `copy_next_piece` moves something though no event has come. Each of
  /// the steps that they take by themselves is asked for the condition under which it acts.
  bool has_work() const {
    return owes_credit() || (hears() && eager_sends.can_post(stream)) ||
           (hears() && sends.can_post_piece(stream)) || placed.can_copy();
  }
  /// Whether somebody must watch this peer until its messages are through: there is work, or an
  /// event is due that nobody has to ask for.
  bool is_busy() const { return has_unsent() || has_receives() || has_work(); }
  /// Whether a message of this rank has not left, or not been taken.
  bool has_sends() const { return has_offers() || stream.has_borrowed(); }
  /// Whether an offered message of this rank has not been taken.
  bool has_offers() const { return !sends.empty() || eager_sends.has_held(); }
  /// Whether a large message is on its way to the own rank.
  bool has_receives() const { return !receives.empty() || placed.is_copying(); }
  bool is_gone() const { return departure || closed; }
  /// Whether the peer can still receive frames.
  bool hears() const { return !closed && !deaf; }

  MailStream stream;
  std::optional<Departure> departure;  // it has said farewell
  bool deaf = false;                   // it takes nothing more
  bool closed = false;                 // nothing more comes either, or what comes makes no sense
  EagerSends eager_sends;
  EagerReceives eager_receives;
  LargeSends sends;
  LargeReceives receives;
  PlacedMail placed;
  // what the frame that is coming fills
  std::optional<Receive> eager;
  std::optional<Matching::Place> arriving;
  std::vector<std::byte> text;

 private:
  /// Returns whether anything left.
  bool pump_out();
  /// Gives credit back to the peer if it is due. Returns whether it did.
  bool post_credit();
};

}  // namespace peal::engine
