// The group's Work over the engine's tickets.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "peal/base/error.h"
#include "peal/engine/ticket.h"
#include "peal/group/work.h"

namespace peal::native {

/// Ends when all of its tickets have; with the first failure among them.
class TicketsWork final : public Work {
 public:
  explicit TicketsWork(std::vector<engine::TicketPtr> tickets) : tickets_(std::move(tickets)) {}

  void wait(Timeout timeout) override {
    const Deadline deadline =
        timeout == kGroupTimeout ? Deadline(TimePoint::max()) : Deadline::after(timeout);
    for (const auto& ticket : tickets_) {
      if (!ticket->wait(deadline)) {
        throw Error(ErrorKind::kTimeout, ticket->what() + " has not ended yet; it goes on");
      }
    }
    if (const auto failure = exception()) std::rethrow_exception(failure);
  }

  bool is_completed() const override {
    return std::all_of(tickets_.begin(), tickets_.end(), [](const auto& t) { return t->ended(); });
  }

  std::exception_ptr exception() const override {
    for (const auto& ticket : tickets_) {
      if (auto failure = ticket->exception()) return failure;
    }
    return nullptr;
  }

  Rank source() const override {
    return tickets_.empty() ? kAnySource : tickets_.front()->source();
  }

 private:
  std::vector<engine::TicketPtr> tickets_;
};

}  // namespace peal::native
