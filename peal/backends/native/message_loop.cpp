#include "peal/backends/native/message_loop.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "peal/backends/native/interruptible.h"
#include "peal/backends/native/stopped_peers.h"
#include "peal/backends/native/task.h"
#include "peal/base/error.h"
#include "peal/mail/errors.h"
#include "peal/system/thread.h"
#include "peal/transport/window/futex.h"

namespace peal::native {
namespace {

using mail::Mailbox;
using mail::TicketPtr;

/// The pause after an error before the next attempt.
constexpr auto kPause = std::chrono::milliseconds(10);

/// How long the loop leaves the mailbox to polling calls before it checks whether they still poll.
constexpr auto kMailNap = std::chrono::milliseconds(1);

/// A polling call checks the peer that it waits for each time, and all peers once in this many
/// polls.
constexpr int kPollsPerRound = 16;

/// How often deadlines are checked even without a wake-up.
constexpr auto kLookEvery = std::chrono::milliseconds(20);

constexpr TimePoint kAtOnce = transport::MailThread::kAtOnce;

constexpr auto kRelaxed = std::memory_order_relaxed;

mail::Envelope envelope_of(const Request& request) {
  return {request.root, request.tag, request.dtype, request.count};
}

observe::OperationKind kind_of(const Request& request) {
  return {.operation = request.operation, .dtype = request.dtype, .root = request.root};
}

/// The tag as stored in the flight recorder.
std::uint64_t tag_of(const Request& request) {
  return static_cast<std::uint32_t>(request.tag.value);
}

/// The payload of a send.
const std::byte* payload_of(const Request& request) {
  return static_cast<const std::byte*>(request.input.front().data);
}

}  // namespace

MessageLoop::MessageLoop(Parts parts)
    : parts_(std::move(parts)),
      mailbox_(parts_.mutex,
               parts_.self,
               parts_.ranks,
               parts_.transport,
               Mailbox::Events{.failed =
                                   [this](const Error& error) {
                                     parts_.group_error.set(
                                         with_operation(error, parts_.recorder.current()));
                                   },
                               .lost = [this](Rank peer) { lost(peer); },
                               .damaged =
                                   [this](Rank peer, const std::string& how) {
                                     parts_.group_error.set(parts_.lost_peers.damaged(
                                         peer, how, parts_.recorder.current()));
                                   },
                               .left = [this](Rank peer,
                                              Departure departure,
                                              const Error& error) { left(peer, departure, error); },
                               .report = parts_.report_received},
               parts_.eager_bound),
      shared_(parts_.transport.shared_mail()) {
  if (shared_) {
    shared_->mail_thread.add(shared_->channel, *this);
  } else {
    thread_ = start_thread([this] { loop(); });
  }
}

MessageLoop::~MessageLoop() {
  stop();
  afterwards_->close();
}

// ---- posting

void MessageLoop::post(Mailbox& mailbox, const TicketPtr& ticket, const Request& request) {
  ticket->record(parts_.recorder,
                 parts_.recorder.begin(kind_of(request), tag_of(request), request.count));
  if (request.operation == Operation::kSend) {
    mailbox.send(ticket, envelope_of(request), payload_of(request));
  } else {
    mailbox.receive(
        ticket, envelope_of(request), static_cast<std::byte*>(request.output.front().data));
  }
}

void MessageLoop::call_loop() {
  if (!called_.exchange(true)) parts_.transport.mail().interrupt();
}

std::vector<TicketPtr> MessageLoop::start(std::span<const Request> requests, Timeout timeout) {
  std::vector<TicketPtr> tickets;
  const bool all_done = mailbox_.with([&](Mailbox& mailbox) {
    parts_.group_error.check();
    try {
      for (const Request& request : requests) {
        tickets.push_back(std::make_shared<mail::Ticket>(describe(request), timeout, request.root));
        post(mailbox, tickets.back(), request);
      }
      mailbox.advance();
    } catch (const std::exception&) {  // a part of them may be posted
      parts_.group_error.set(current_error("the start of messages"));
      pass_on_group_error(mailbox);
      parts_.group_error.check();
    }
    bool all_ended = true;
    for (const TicketPtr& ticket : tickets) {
      if (ticket->ended()) {
        mailbox.open_tickets().forget(ticket);
      } else {
        all_ended = false;
      }
    }
    return all_ended && !mailbox.is_busy();
  });
  if (!all_done) call_loop();
  return tickets;
}

bool MessageLoop::send_at_once(Mailbox& mailbox, const Request& request) {
  try {
    if (!mailbox.send_at_once(envelope_of(request), payload_of(request))) return false;
  } catch (const std::exception&) {  // the link is broken
    parts_.group_error.set(current_error(describe(request)));
    pass_on_group_error(mailbox);
    parts_.group_error.check();
  }
  parts_.recorder.note(kind_of(request), tag_of(request), request.count);
  calls_.store(calls_.load(kRelaxed) + 1, kRelaxed);
  if (waiting_ > 0 || mailbox.is_busy(request.root)) call_loop();
  return true;
}

/// The ticket lies on this stack, so that a small message allocates nothing. The mailbox must not
/// refer to the ticket any more when this returns.
Rank MessageLoop::run_inside(const Request& request, Timeout timeout) {
  std::optional<Inside> mailbox(std::in_place, mailbox_, std::adopt_lock);
  parts_.group_error.check();
  if (request.operation == Operation::kSend && send_at_once(**mailbox, request)) {
    return request.root;
  }
  mail::Ticket ticket([&request] { return describe(request); }, timeout, request.root);
  const TicketPtr borrowed(TicketPtr(), &ticket);
  try {
    post(**mailbox, borrowed, request);
    if (!ticket.ended()) {
      poll_until_ended(*mailbox, request.root, ticket);
    } else if (const Rank peer = ticket.source();
               peer != kAnySource && (*mailbox)->has_work(peer)) {
      (*mailbox)->advance(peer);  // the peer waits for the room that this receive has made
    }
  } catch (const std::exception&) {
    parts_.group_error.set(current_error(describe(request)));
    pass_on_group_error(**mailbox);  // this ends the ticket, if it was posted
    ticket.fail(parts_.group_error.cause());
  }
  const bool done = ticket.ended();
  if (done) {
    (*mailbox)->open_tickets().forget(borrowed);
  } else {
    ticket.start_timeout();
    (*mailbox)->open_tickets().timeout_started(ticket);
    ++waiting_;
  }
  // The loop must also continue messages that this call has accepted, and those of calls that rely
  // on it.
  if (waiting_ > 0 || (*mailbox)->is_busy()) call_loop();
  mailbox.reset();  // from here on the loop may end, unless this call waits
  if (!done) {
    // The loop ends the ticket at its deadline.
    await(ticket, parts_.interrupt, parts_.group_error);
    mailbox_.with([&](Mailbox& m) {
      --waiting_;
      m.open_tickets().forget(borrowed);
    });
  }
  return ticket.result();
}

void MessageLoop::poll_until_ended(Inside& mailbox, Rank peer, mail::Ticket& ticket) {
  if (has_poller_.load(kRelaxed)) {  // the call that polls also moves this message
    mailbox->advance();
    return;
  }
  struct Polling {
    explicit Polling(std::atomic<bool>& f) : flag(f) { flag.store(true, kRelaxed); }
    ~Polling() { flag.store(false, kRelaxed); }
    std::atomic<bool>& flag;
  };
  const Polling polling(has_poller_);
  calls_.store(calls_.load(kRelaxed) + 1, kRelaxed);
  Backoff backoff(parts_.cores);
  // From `leave_at` on, the loop moves the data, and this call waits where it calls the interrupt.
  Deadline leave_at(TimePoint::max());
  for (int poll = 0;; ++poll) {
    const bool all = peer == kAnySource || poll % kPollsPerRound == 0;
    const bool moved = all ? mailbox->advance() : mailbox->advance(peer);
    if (ticket.ended() || parts_.group_error.is_set()) return;
    if (backoff.is_time_for_deadline()) {
      if (ticket.start_timeout().passed() || leave_at.passed()) return;
      if (parts_.interrupt && leave_at.at() == TimePoint::max()) {
        leave_at = Deadline::after(kInterruptEvery);
      }
    }
    if (moved) backoff.renew();
    if (!backoff.wait()) return;
    mailbox.let_others_enter();
  }
}

// ---- the loop

void MessageLoop::loop() {
  std::vector<transport::Interest> interests;
  while (!stopping_.load(std::memory_order_acquire)) {
    interests.clear();
    const TimePoint next = round(interests);
    if (next == kAtOnce) continue;
    try {
      parts_.transport.mail().wait(interests, Deadline(next));
    } catch (const std::exception&) {
      parts_.group_error.set(current_error("the exchange of messages"));
      std::this_thread::sleep_for(kPause);
    }
  }
}

TimePoint MessageLoop::round(std::vector<transport::Interest>& interests) noexcept {
  try {
    return try_round(interests);
  } catch (const std::exception&) {
    parts_.group_error.set(current_error("the exchange of messages"));
    interests.clear();
    return Clock::now() + kPause;
  }
}

TimePoint MessageLoop::try_round(std::vector<transport::Interest>& interests) {
  const bool has_napped = std::exchange(naps_, false);
  if (has_napped && has_poller_) return kAtOnce;  // a polling call moves everything
  if (!has_napped && calls_are_polling()) {
    naps_ = true;
    return Clock::now() + kMailNap;
  }
  TimePoint next = TimePoint::max();
  const bool moved =
      mailbox_.with([&](Mailbox& mailbox) { return move(mailbox, interests, next); });
  return moved || has_napped ? kAtOnce : next;
}

bool MessageLoop::calls_are_polling() {
  const std::uint64_t calls = calls_.load(kRelaxed);
  const bool is_polled = has_poller_.load(kRelaxed) || calls != calls_seen_;
  calls_seen_ = calls;
  if (called_.exchange(false) || busy_ || !is_polled || parts_.group_error.is_set()) return false;
  const TimePoint now = Clock::now();
  if (now - looked_ >= kLookEvery) {
    looked_ = now;
    return false;
  }
  return true;
}

bool MessageLoop::move(Mailbox& mailbox,
                       std::vector<transport::Interest>& interests,
                       TimePoint& next) {
  // The group error first: the memory of failed messages must not be touched.
  bool moved = pass_on_group_error(mailbox);
  moved |= mailbox.advance();
  check_deadlines(mailbox, next);
  moved |= pass_on_group_error(mailbox);
  mailbox.add_interests(interests);
  busy_ = mailbox.is_busy();
  const bool is_any_open = busy_ || mailbox.open_tickets().any();
  if (is_any_open) next = std::min(next, Clock::now() + transport::kLongestSleep);
  return moved;
}

/// Once the group error is set: fails the open messages and sends the error to the peers.
bool MessageLoop::pass_on_group_error(Mailbox& mailbox) {
  if (!parts_.group_error.is_set() || mailbox.has_failed()) return false;
  mailbox.fail(parts_.group_error.cause());
  mailbox.tell_abort(parts_.group_error.cause());
  return true;
}

void MessageLoop::check_deadlines(Mailbox& mailbox, TimePoint& next) {
  for (const TicketPtr& ticket : mailbox.open_tickets().late(Clock::now())) {
    const std::optional<mail::MessageCount> held = mailbox.held_behind(*ticket);
    parts_.group_error.set(
        Error(ErrorKind::kTimeout,
              fmt::format("{} on rank {} has found no matching send or receive within {} s{}{}",
                          ticket->what(),
                          parts_.self,
                          static_cast<double>(ticket->timeout().count()) / 1000.0,
                          held ? mail::describe_held(ticket->peer(), *held) : "",
                          location_text(ticket->peer())),
              details_of_missing(*ticket)));
  }
  next = std::min(next, mailbox.open_tickets().soonest());
}

ErrorDetails MessageLoop::details_of_missing(const mail::Ticket& ticket) const {
  const bool is_one_peer = ticket.peer() != kAnySource && ticket.peer() != parts_.self;
  return is_one_peer ? parts_.lost_peers.details_of_missing(ticket.peer(), ticket.what())
                     : ErrorDetails{.operation = ticket.what()};
}

/// "; rank 2 (pid 7 on b, over shm) is alive", and which other ranks do not run.
std::string MessageLoop::location_text(Rank peer) const {
  std::string text;
  if (peer != kAnySource && peer != parts_.self) {
    const std::string presence = transport::describe(parts_.transport.presence(peer));
    text = fmt::format("; rank {} ({}){}{}",
                       peer,
                       parts_.transport.describe(peer),
                       presence.empty() ? "" : " ",
                       presence);
  }
  return text + describe_stopped_peers(parts_.transport, parts_.self, parts_.ranks, {&peer, 1});
}

void MessageLoop::send_progress_report(std::span<const Rank> peers,
                                       const engine::ProgressReport& report) {
  mailbox_.with([&](Mailbox& mailbox) {
    for (const Rank peer : peers) mailbox.send_progress_report(peer, report);
  });
  call_loop();
}

}  // namespace peal::native
