#include "peal/mail/open_tickets.h"

#include <algorithm>
#include <iterator>

namespace peal::mail {
namespace {

/// A call of `late` may check this many tickets on average. With more tickets, `late` checks them
/// less often.
constexpr std::size_t kLooks = 64;

}  // namespace

void OpenTickets::add(const TicketPtr& ticket) {
  tickets_.push_back(ticket);
  timeout_started(*ticket);
}

void OpenTickets::timeout_started(const Ticket& ticket) {
  soonest_ = std::min(soonest_, ticket.deadline().at());
}

void OpenTickets::forget(const TicketPtr& ticket) {
  const auto found = std::find(tickets_.rbegin(), tickets_.rend(), ticket);
  if (found != tickets_.rend()) tickets_.erase(std::next(found).base());
}

bool OpenTickets::any() {
  while (!tickets_.empty() && tickets_.back()->ended()) tickets_.pop_back();
  return !tickets_.empty();
}

std::vector<TicketPtr> OpenTickets::late(TimePoint now) {
  std::vector<TicketPtr> late;
  saved_ += kLooks;
  if (now < soonest_ && saved_ < tickets_.size()) return late;
  saved_ = 0;
  soonest_ = TimePoint::max();
  std::erase_if(tickets_, [](const TicketPtr& ticket) { return ticket->ended(); });
  for (const TicketPtr& ticket : tickets_) {
    timeout_started(*ticket);
    if (ticket->deadline().passed(now)) late.push_back(ticket);
  }
  return late;
}

void OpenTickets::fail(const Error& cause) {
  for (const TicketPtr& ticket : tickets_) ticket->fail(cause);
  tickets_.clear();
}

}  // namespace peal::mail
