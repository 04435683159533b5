// Flow control of small messages between this rank and one peer. A small message goes uninvited,
// and the receiver keeps it until its receive comes; so the receiver bounds how much it keeps. The
// sender counts what it has sent and the receiver has not given back. Beyond the bound it holds a
// message back: only the message's offer goes, as for a large one (large_mail.h), so that a receive
// finds it wherever it stands. A held message leaves when its receive is there, or when the bound
// allows it again. The mailbox, which uses it, carries the frames. Why so: docs/decisions/0033.
#pragma once

#include <cstdint>
#include <map>
#include <memory_resource>
#include <optional>
#include <span>
#include <unordered_map>

#include "peal/base/units.h"
#include "peal/engine/mail_frame.h"
#include "peal/engine/mail_stream.h"
#include "peal/engine/matching.h"
#include "peal/engine/ticket.h"

namespace peal::engine {

/// What a message that is kept costs the receiver beside its payload.
inline constexpr Bytes kKeepingCost = 256_B;

/// How much a rank keeps of the small messages of one peer that no receive has taken: payload, and
/// kKeepingCost for each. The same on every rank of a group.
///   bound = min(16 MiB, 256 MiB / ranks), and no less than the largest of them costs
Bytes eager_bound(int ranks);

/// A number of messages and the bytes of their payloads.
struct MailCount {
  std::int64_t messages = 0;
  Bytes bytes;

  Bytes cost() const { return bytes + kKeepingCost * messages; }
  void add(const MailCount& other) {
    messages += other.messages;
    bytes += other.bytes;
  }
  void subtract(const MailCount& other) {
    messages -= other.messages;
    bytes -= other.bytes;
  }
  friend bool operator==(const MailCount&, const MailCount&) = default;
};

/// What this rank has sent to one peer, and what it holds back. Threads: one at a time.
class EagerSends {
 public:
  struct Held {
    TicketPtr ticket;
    MailFrame frame;  // with which the message goes, by the number of its offer
    std::span<const std::byte> data;
  };

  explicit EagerSends(Bytes bound) : bound_(bound) {}

  /// Whether a message may go now: nothing stands before it, and the bound allows it. Where nothing
  /// is unreceived it always does.
  bool admits(Bytes payload) const { return held_.empty() && fits(payload); }
  /// A message goes.
  void sent(Bytes payload) { unreceived_.add({1, payload}); }
  /// The peer gives back. Returns false, and does nothing, if it was not sent so much.
  bool give_back(const MailCount& received);
  /// What was sent and not given back: the peer may have received some of it already.
  const MailCount& unreceived() const { return unreceived_; }

  /// Holds back a message that was offered by the number in its frame. The memory is borrowed until
  /// the ticket has ended, or `clear`.
  void hold(Held message);
  bool has_held() const { return !held_.empty(); }
  bool holds(const Ticket& ticket) const;
  /// The peer's receive is there: takes the message of this number out. Nothing if it is not held.
  std::optional<Held> take(std::uint64_t id);
  /// Takes out the first message if the bound allows it now. It is counted as sent.
  std::optional<Held> release();

  /// Whether the first held message may go, and the stream has nothing else to send.
  bool can_post(const MailStream& stream) const { return can_release() && !stream.has_unsent(); }
  /// Posts the messages that may go if it can, but no more than a piece; returns whether it did.
  bool post_next(MailStream& stream) { return can_post(stream) && post_held(stream); }

  /// Forgets what is held.
  void clear() { held_.clear(); }

 private:
  bool fits(Bytes payload) const {
    return unreceived_.messages == 0 || unreceived_.cost() + MailCount{1, payload}.cost() <= bound_;
  }
  bool can_release() const {
    return !held_.empty() && fits(Bytes(std::ssize(held_.begin()->second.data)));
  }
  bool post_held(MailStream& stream);

  Bytes bound_;
  MailCount unreceived_;
  std::map<std::uint64_t, Held> held_;  // by number, and so in the order in which they were sent
};

/// What one peer has sent to this rank, and what it holds back. Threads: one at a time.
class EagerReceives {
 public:
  /// What is noted of offers is kept in `memory`, which outlives this.
  explicit EagerReceives(Bytes bound,
                         std::pmr::memory_resource* memory = std::pmr::get_default_resource())
      : bound_(bound), offers_(memory) {}

  /// A message begins to come. Returns false if it breaks the bound.
  bool came(Bytes payload);
  /// A receive has taken a message: it is not kept any more.
  void taken(Bytes payload) { taken_.add({1, payload}); }

  /// The peer offers a message that it holds back, and no receive is there yet. Returns false if
  /// another one has this number.
  bool offered(std::uint64_t id, Matching::Place offer) {
    return offers_.emplace(id, offer).second;
  }
  /// The offer that waits by this number is answered, or its message comes. Nothing if none waits.
  std::optional<Matching::Place> take_offer(std::uint64_t id);

  /// Whether it is time to give back what was taken. That is seldom, unless the peer holds messages
  /// back: then it has to go on soon. A peer that has left sends nothing but what it has offered.
  bool owes(bool peer_has_left) const;
  /// What the peer is told that it may send anew.
  MailCount give_back();

  void clear();

 private:
  Bytes bound_;
  MailCount open_;   // came, and the peer was not told that it was taken
  MailCount taken_;  // of that
  std::pmr::unordered_map<std::uint64_t, Matching::Place> offers_;
};

}  // namespace peal::engine
