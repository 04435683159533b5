// The messages of a rank to itself. They pass no stream: the bytes are copied from memory to
// memory. Without a waiting receive, a message is kept or held back like a small message to another
// rank (eager_mail.h). Used by the mailbox.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <unordered_map>

#include "peal/base/units.h"
#include "peal/mail/eager_mail.h"
#include "peal/mail/frame.h"
#include "peal/mail/matching.h"
#include "peal/mail/ticket.h"

namespace peal::mail {

/// Threads: one at a time.
class SelfMail {
 public:
  /// `bound`: on kept messages; if no message is kept, a message of any size is. The messages wait
  /// for their receives in `matching`. The records of held messages are allocated from `memory`.
  /// Both must outlive this object.
  SelfMail(Rank self, Bytes bound, Matching& matching, std::pmr::memory_resource* memory)
      : self_(self), matching_(matching), sends_(bound), offers_(memory) {}

  /// Sends a message for which no receive waits: keeps a copy, or holds the message back.
  void send(const TicketPtr& ticket, const Frame& frame, std::span<const std::byte> data);
  /// Copies the bytes of a message to its receive. Both tickets succeed.
  void deliver(const TicketPtr& ticket,
               std::span<const std::byte> data,
               const Receive& receive) const;
  /// A receive has taken a kept message.
  void received(Bytes payload);
  /// A receive takes a held message.
  void receive_held(const Frame& offer, const Receive& receive);

  /// The messages that count against the bound, and the held ones.
  const EagerSends& sends() const { return sends_; }

  /// Forgets the held messages, and does not touch their memory any more.
  void forget_held();

 private:
  /// Keeps held messages as far as the bound allows now.
  void keep_held();

  Rank self_;
  Matching& matching_;
  EagerSends sends_;
  std::pmr::unordered_map<std::uint64_t, Matching::Position>
      offers_;  // of held messages, by number
  std::uint64_t next_id_ = 1;
};

}  // namespace peal::mail
