// An asynchronous collective: what the worker runs, and the caller's Work.
#pragma once

#include <cstddef>
#include <memory>

#include "peal/backends/native/owned_request.h"
#include "peal/backends/native/task.h"
#include "peal/backends/native/work_of_tickets.h"
#include "peal/mail/ticket.h"
#include "peal/system/recycled.h"

namespace peal::native {

/// Cost: one that is made after another is gone takes over its memory, so that a loop of operations
/// on one buffer allocates nothing.
class StartedCollective final : public WorkOfTickets {
 public:
  using Ptr = std::shared_ptr<StartedCollective>;

  static Ptr make(const Request& request, Timeout timeout) {
    return std::allocate_shared<StartedCollective>(
        RecyclingAllocator<StartedCollective>(), request, timeout);
  }
  /// Use `make`.
  StartedCollective(const Request& request, Timeout timeout)
      : request_(request), ticket_([this] { return describe(request_.get()); }, timeout) {
    ticket_.start_timeout();
  }

  const Request& request() const { return request_.get(); }
  mail::Ticket& ticket() const { return ticket_; }

 private:
  std::size_t tickets() const override { return 1; }
  mail::Ticket& ticket(std::size_t) const override { return ticket_; }

  OwnedRequest request_;
  mutable mail::Ticket ticket_;  // safe for threads
};

}  // namespace peal::native
