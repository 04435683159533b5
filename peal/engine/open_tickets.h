// The tickets of a mailbox's messages that have not ended: whose time is over, and who is told that
// the group has failed. A burst leaves many of them open at once, so a look at the time must not
// cost a look at each.
#pragma once

#include <cstddef>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/error.h"
#include "peal/engine/ticket.h"

namespace peal::engine {

/// Keeps tickets that have ended for a while. Threads: one at a time.
class OpenTickets {
 public:
  void add(const TicketPtr& ticket);
  /// The deadline of a ticket that was added is another now.
  void reckoned(const Ticket& ticket);
  /// Lets go of a ticket. Cost: no matter how many there are if it is one of the last.
  void forget(const TicketPtr& ticket);

  /// Whether any is open.
  bool any();
  /// No deadline of an open one is earlier. Perhaps none is so early.
  TimePoint soonest() const { return soonest_; }
  /// The open ones whose deadline has passed. Cost: at most some of them, on average, between one
  /// deadline and the next.
  std::vector<TicketPtr> late(TimePoint now);

  void fail(const Error& cause);

 private:
  std::vector<TicketPtr> tickets_;
  TimePoint soonest_ = TimePoint::max();
  std::size_t saved_ = 0;  // looks at tickets that were not taken
};

}  // namespace peal::engine
