// Flow control of small messages between this rank and one peer. The sender sends a small message
// without waiting for its receive, and the receiver keeps the message until then. So the memory of
// the receiver needs a bound.
// The sender counts the messages that it has sent and for which the receiver has not given back
// credit. Credit is a frame that says how many messages and bytes receives have taken: the sender
// may send as many again. Beyond the bound the sender holds a message back and sends only an offer,
// as for a large message (large_mail.h). So a receive can match the message at any place in the
// queue. A held message leaves when its receive accepts it, or when the bound allows it again.
// The mailbox uses these classes and sends the frames. Reasons: docs/decisions/0033.
#pragma once

#include <cstdint>
#include <map>
#include <memory_resource>
#include <optional>
#include <span>
#include <unordered_map>

#include "peal/base/departure.h"
#include "peal/base/units.h"
#include "peal/mail/frame.h"
#include "peal/mail/frame_stream.h"
#include "peal/mail/matching.h"
#include "peal/mail/ticket.h"

namespace peal::mail {

/// The cost of a kept message for the receiver, in addition to its payload.
inline constexpr Bytes kKeepingCost = 256_B;

/// The most that a rank keeps of one peer's small messages before their receives: the payload, and
/// kKeepingCost for each message. The same on every rank of a group.
///   bound = min(16 MiB, 256 MiB / ranks), but at least the cost of the largest small message
Bytes eager_bound(int ranks);

/// A number of messages and the bytes of their payloads.
struct MessageCount {
  std::int64_t messages = 0;
  Bytes bytes;

  Bytes cost() const { return bytes + kKeepingCost * messages; }
  void add(const MessageCount& other) {
    messages += other.messages;
    bytes += other.bytes;
  }
  void subtract(const MessageCount& other) {
    messages -= other.messages;
    bytes -= other.bytes;
  }
  friend bool operator==(const MessageCount&, const MessageCount&) = default;
};

/// What this rank has sent to one peer, and what it holds back. Threads: one at a time.
class EagerSends {
 public:
  struct Held {
    TicketPtr ticket;
    Frame frame;  // of the message; its id is the number of the offer
    std::span<const std::byte> data;
  };

  explicit EagerSends(Bytes bound) : bound_(bound) {}

  /// Whether a message may go now: no message is held back, and the bound allows it. The bound
  /// always allows one message if the peer has given back all credit.
  bool admits(Bytes payload) const { return held_.empty() && fits(payload); }
  /// Counts a message that goes.
  void sent(Bytes payload) { unreceived_.add({1, payload}); }
  /// The peer gives back credit. Returns false, and does nothing, if the credit is negative or
  /// exceeds `unreceived()`.
  bool give_back(const MessageCount& received);
  /// The sent messages for which the peer has not given back credit. The peer may have received
  /// some of them already.
  const MessageCount& unreceived() const { return unreceived_; }

  /// Holds back a message that was offered under the number in its frame. The memory is borrowed
  /// until the ticket has ended, or `clear`.
  void hold(Held message);
  bool has_held() const { return !held_.empty(); }
  bool holds(const Ticket& ticket) const;
  /// The peer's receive has accepted the message of this number. Removes and returns the message,
  /// or returns nothing if it is not held.
  std::optional<Held> take(std::uint64_t id);
  /// Removes and returns the first held message if the bound allows it now, and counts it as sent.
  std::optional<Held> release();

  /// Whether the first held message may go and the stream has nothing else to send.
  bool can_post(const FrameStream& stream) const { return can_release() && !stream.has_unsent(); }
  /// If can_post(): posts the held messages that may go, up to a piece in all. Returns whether it
  /// posted any.
  bool post_next(FrameStream& stream) { return can_post(stream) && post_held(stream); }

  /// Forgets the held messages.
  void clear() { held_.clear(); }

 private:
  bool fits(Bytes payload) const {
    return unreceived_.messages == 0 ||
           unreceived_.cost() + MessageCount{1, payload}.cost() <= bound_;
  }
  bool can_release() const {
    return !held_.empty() && fits(Bytes(std::ssize(held_.begin()->second.data)));
  }
  bool post_held(FrameStream& stream);

  Bytes bound_;
  MessageCount unreceived_;
  std::map<std::uint64_t, Held> held_;  // by number, which is the order of sending
};

/// What one peer has sent to this rank, and what the peer holds back. Threads: one at a time.
class EagerReceives {
 public:
  /// The records of offers are allocated from `memory`, which outlives this.
  explicit EagerReceives(Bytes bound,
                         std::pmr::memory_resource* memory = std::pmr::get_default_resource())
      : bound_(bound), offers_(memory) {}

  /// A message begins to arrive. Returns false if it breaks the bound.
  bool came(Bytes payload);
  /// A receive has taken a message: this rank no longer keeps it.
  void taken(Bytes payload) { taken_.add({1, payload}); }

  /// The peer offers a message that it holds back, and no receive matches it yet. Returns false if
  /// another offer has this number.
  bool offered(std::uint64_t id, Matching::Position offer) {
    return offers_.emplace(id, offer).second;
  }
  /// Removes and returns the waiting offer of this number, which is accepted or whose message
  /// arrives. Nothing if no such offer waits.
  std::optional<Matching::Position> take_offer(std::uint64_t id);

  /// Whether to give back credit now. Credit is rarely given back, but soon while the peer holds
  /// messages back. A peer that has left (`departure`) needs credit only for the messages that it
  /// has offered.
  bool owes(const std::optional<Departure>& departure) const;
  /// Returns the credit to send: what the peer may send again.
  MessageCount give_back();

  void clear();

 private:
  Bytes bound_;
  MessageCount open_;   // arrived, and not given back
  MessageCount taken_;  // the part of open_ that receives have taken
  std::pmr::unordered_map<std::uint64_t, Matching::Position> offers_;
};

}  // namespace peal::mail
