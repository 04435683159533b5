// The open tickets of a mailbox's messages. Finds the tickets whose deadline has passed, and fails
// all tickets when the group fails. After a burst many tickets are open at once, so a check of the
// time must not check each ticket.
#pragma once

#include <cstddef>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/error.h"
#include "peal/mail/ticket.h"

namespace peal::mail {

/// Keeps ended tickets for a while. Threads: one at a time.
class OpenTickets {
 public:
  void add(const TicketPtr& ticket);
  /// Call when an added ticket has got its deadline.
  void timeout_started(const Ticket& ticket);
  /// Removes a ticket. Cost: constant if the ticket is one of the last that were added.
  void forget(const TicketPtr& ticket);

  /// Whether any ticket is open.
  bool any();
  /// A lower limit: no open ticket has an earlier deadline. All may be later.
  TimePoint soonest() const { return soonest_; }
  /// The open tickets whose deadline has passed. Cost: on average a constant number of checks,
  /// except when a deadline passes.
  std::vector<TicketPtr> late(TimePoint now);

  void fail(const Error& cause);

 private:
  std::vector<TicketPtr> tickets_;
  TimePoint soonest_ = TimePoint::max();
  std::size_t saved_ = 0;  // how many checks of tickets may be spent
};

}  // namespace peal::mail
