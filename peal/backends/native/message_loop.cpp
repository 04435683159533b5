#include "peal/backends/native/message_loop.h"

#include <algorithm>

#include <fmt/format.h>

#include "peal/backends/native/task.h"
#include "peal/base/error.h"

namespace peal::native {

using engine::TicketPtr;

MessageLoop::MessageLoop(
    Rank self, int ranks, transport::Transport& transport, engine::Verdict& verdict, Cores cores)
    : self_(self),
      transport_(transport),
      verdict_(verdict),
      cores_(cores),
      mailbox_(self,
               ranks,
               transport,
               {.failed = [this](const Error& error) { verdict_.reach(error); },
                .lost = [this](Rank peer) { lost(peer); }}) {
  thread_ = std::thread([this] { loop(); });
}

MessageLoop::~MessageLoop() { stop(); }

void MessageLoop::stop() {
  stopping_.store(true, std::memory_order_release);
  transport_.mail().interrupt();
  if (thread_.joinable()) thread_.join();
  // Nobody will move what is still open: whoever waits for it must hear so.
  const std::lock_guard lock(mutex_);
  mailbox_.fail(verdict_.reached()
                    ? verdict_.cause()
                    : Error(ErrorKind::kUsage, "the group was destroyed with messages under way"));
}

// ---- posting

void MessageLoop::post(const TicketPtr& ticket, const Request& request) {
  const engine::Envelope envelope{request.root, request.tag, request.dtype, request.count};
  if (request.operation == Operation::kSend) {
    mailbox_.send(ticket, envelope, static_cast<const std::byte*>(request.input.front().data));
  } else {
    mailbox_.receive(ticket, envelope, static_cast<std::byte*>(request.output.front().data));
  }
}

std::vector<TicketPtr> MessageLoop::start(std::span<const Request> requests, Timeout timeout) {
  std::vector<TicketPtr> tickets;
  bool all_done = true;
  {
    const std::lock_guard lock(mutex_);
    verdict_.check();
    for (const Request& request : requests) {
      tickets.push_back(std::make_shared<engine::Ticket>(describe(request), timeout));
      post(tickets.back(), request);
    }
    mailbox_.advance();
    for (const TicketPtr& ticket : tickets) all_done &= ticket->ended();
    all_done &= !mailbox_.has_unsent();
  }
  if (!all_done) transport_.mail().interrupt();
  return tickets;
}

Rank MessageLoop::run(const Request& request, Timeout timeout) {
  const auto ticket = std::make_shared<engine::Ticket>(describe(request), timeout);
  {
    const std::lock_guard lock(mutex_);
    verdict_.check();
    post(ticket, request);
  }
  Patience patience(cores_);
  bool leaves_unsent = false;  // also of other operations: what was accepted in passing
  do {
    const std::lock_guard lock(mutex_);
    if (mailbox_.advance()) patience.renew();
    leaves_unsent = mailbox_.has_unsent();
  } while (!ticket->ended() && !verdict_.reached() && patience.wait());
  if (!ticket->ended() || leaves_unsent) transport_.mail().interrupt();  // the loop goes on with it
  if (!ticket->ended()) {
    ticket->wait(Deadline(TimePoint::max()));
  }
  if (const auto exception = ticket->exception()) std::rethrow_exception(exception);
  return ticket->source();
}

// ---- the loop

void MessageLoop::loop() {
  while (!stopping_.load(std::memory_order_acquire)) {
    TimePoint next = TimePoint::max();
    if (!round(next)) transport_.mail().wait(interests_, Deadline(next));
  }
}

bool MessageLoop::round(TimePoint& next) {
  const std::lock_guard lock(mutex_);
  bool moved = pass_on_verdict();  // first: the memory of what has failed is not to be touched
  moved |= mailbox_.advance();
  check_deadlines(next);
  moved |= pass_on_verdict();
  interests_.clear();
  mailbox_.add_interests(interests_);
  return moved;
}

/// The first time that the verdict is seen: ends what is open here and tells the peers.
bool MessageLoop::pass_on_verdict() {
  if (!verdict_.reached() || told_) return false;
  told_ = true;
  mailbox_.fail(verdict_.cause());
  mailbox_.tell_abort(verdict_.cause());
  return true;
}

void MessageLoop::check_deadlines(TimePoint& next) {
  const TimePoint now = Clock::now();
  for (const TicketPtr& ticket : mailbox_.open_tickets()) {
    next = std::min(next, ticket->deadline().at());
    if (!ticket->deadline().passed(now)) continue;
    verdict_.reach(Error(ErrorKind::kTimeout,
                         fmt::format("{} on rank {} has not met its other half within {} s",
                                     ticket->what(),
                                     self_,
                                     static_cast<double>(ticket->timeout().count()) / 1000.0)));
  }
}

void MessageLoop::lost(Rank peer) {
  verdict_.reach(
      Error(ErrorKind::kPeerLost,
            fmt::format("rank {} ({}) was lost: its process ended or its connection broke",
                        peer,
                        transport_.describe(peer))));
}

void MessageLoop::leave(Deadline deadline) {
  {
    const std::lock_guard lock(mutex_);
    pass_on_verdict();
    mailbox_.say_farewell();
  }
  Patience patience(Cores::kShared);
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      mailbox_.advance();
      if (mailbox_.is_flushed() || deadline.passed()) break;
    }
    if (!patience.wait()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  stop();
}

}  // namespace peal::native
