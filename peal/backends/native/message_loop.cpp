#include "peal/backends/native/message_loop.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "peal/backends/native/halted.h"
#include "peal/backends/native/task.h"
#include "peal/base/error.h"
#include "peal/base/thread.h"
#include "peal/engine/mail_errors.h"
#include "peal/transport/futex.h"

namespace peal::native {
namespace {

using engine::Mailbox;
using engine::TicketPtr;

/// What cannot be done is not tried again at once.
constexpr auto kPause = std::chrono::milliseconds(10);

/// How long the loop leaves the mailbox to the calls before it checks again whether they attend to
/// it.
constexpr auto kMailNap = std::chrono::milliseconds(1);

/// A call that polls looks at the peer that it waits for, and once in so many polls at all.
constexpr int kPollsPerRound = 16;

/// Deadlines are looked at this often all the same.
constexpr auto kLookEvery = std::chrono::milliseconds(20);

constexpr TimePoint kAtOnce = transport::Rounds::kAtOnce;

constexpr auto kRelaxed = std::memory_order_relaxed;

/// A rank that has no time left still says why it leaves.
constexpr auto kLastWords = std::chrono::milliseconds(200);

/// For so long none of what has left may be acknowledged: by the systems of peers that are gone for
/// good it never is.
constexpr auto kAcknowledged = std::chrono::seconds(1);

engine::Envelope envelope_of(const Request& request) {
  return {request.root, request.tag, request.dtype, request.count};
}

observe::OperationKind kind_of(const Request& request) {
  return {.operation = request.operation, .dtype = request.dtype, .root = request.root};
}

/// As the recorder has it of messages.
std::uint64_t tag_of(const Request& request) {
  return static_cast<std::uint32_t>(request.tag.value);
}

/// Of a send.
const std::byte* payload_of(const Request& request) {
  return static_cast<const std::byte*>(request.input.front().data);
}

}  // namespace

MessageLoop::MessageLoop(Rank self,
                         int ranks,
                         transport::Transport& transport,
                         engine::Verdict& verdict,
                         const observe::GroupRecorder& recorder,
                         const LostPeers& lost_peers,
                         Cores cores,
                         Door& door,
                         Interrupt interrupt,
                         StandingHeard standing_heard,
                         std::optional<Bytes> eager_bound)
    : self_(self),
      ranks_(ranks),
      transport_(transport),
      verdict_(verdict),
      recorder_(recorder),
      lost_peers_(lost_peers),
      cores_(cores),
      door_(door),
      interrupt_(std::move(interrupt)),
      mailbox_(door,
               self,
               ranks,
               transport,
               Mailbox::Events{.failed = [this](const Error& error) { verdict_.reach(error); },
                               .lost = [this](Rank peer) { lost(peer); },
                               .left = [this](Rank peer,
                                              Departure departure,
                                              const Error& error) { left(peer, departure, error); },
                               .standing = std::move(standing_heard)},
               eager_bound),
      shared_(transport.shared_mail()) {
  if (shared_) {
    shared_->rounds.add(shared_->channel, *this);
  } else {
    thread_ = start_thread([this] { loop(); });
  }
}

MessageLoop::~MessageLoop() {
  stop();
  afterwards_->close();
}

void MessageLoop::stop() {
  stopping_.store(true, std::memory_order_release);
  if (shared_) {
    shared_->rounds.remove(*this);
  } else {
    transport_.mail().interrupt();
    if (thread_.joinable()) thread_.join();
  }
  conclusions_.close();
  // Nobody will move what is still open: whoever waits for it must hear so.
  const Error cause = verdict_.reached() ? verdict_.cause()
                                         : Error(ErrorKind::kUsage,
                                                 "the group was destroyed with messages under way");
  mailbox_.with([&](Mailbox& mailbox) { mailbox.fail(cause); });
  // A call that attends lets others in and comes back, whether or not it will wait after that.
  const auto has_calls = [&](const Mailbox&) { return waiting_ > 0 || attended_.load(kRelaxed); };
  while (mailbox_.with(has_calls)) std::this_thread::yield();
}

// ---- posting

void MessageLoop::post(Mailbox& mailbox, const TicketPtr& ticket, const Request& request) {
  ticket->record(recorder_, recorder_.begin(kind_of(request), tag_of(request), request.count));
  if (request.operation == Operation::kSend) {
    mailbox.send(ticket, envelope_of(request), payload_of(request));
  } else {
    mailbox.receive(
        ticket, envelope_of(request), static_cast<std::byte*>(request.output.front().data));
  }
}

void MessageLoop::call_loop() {
  if (!called_.exchange(true)) transport_.mail().interrupt();
}

std::vector<TicketPtr> MessageLoop::start(std::span<const Request> requests, Timeout timeout) {
  std::vector<TicketPtr> tickets;
  const bool all_done = mailbox_.with([&](Mailbox& mailbox) {
    verdict_.check();
    try {
      for (const Request& request : requests) {
        tickets.push_back(
            std::make_shared<engine::Ticket>(describe(request), timeout, request.root));
        post(mailbox, tickets.back(), request);
      }
      mailbox.advance();
    } catch (const std::exception&) {  // with a part of them posted
      verdict_.reach(current_error("the start of messages"));
      pass_on_verdict(mailbox);
      verdict_.check();
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
  } catch (const std::exception&) {  // the link is spoilt
    verdict_.reach(current_error(describe(request)));
    pass_on_verdict(mailbox);
    verdict_.check();
  }
  recorder_.note(kind_of(request), tag_of(request), request.count);
  calls_.store(calls_.load(kRelaxed) + 1, kRelaxed);
  if (waiting_ > 0 || mailbox.is_busy(request.root)) call_loop();
  return true;
}

/// The ticket lies on this stack, so that a small message allocates nothing: the mailbox must have
/// let go of it when this returns.
Rank MessageLoop::run_inside(const Request& request, Timeout timeout) {
  std::optional<Inside> mailbox(std::in_place, mailbox_, std::adopt_lock);
  verdict_.check();
  if (request.operation == Operation::kSend && send_at_once(**mailbox, request)) {
    return request.root;
  }
  engine::Ticket ticket([&request] { return describe(request); }, timeout, request.root);
  const TicketPtr borrowed(TicketPtr(), &ticket);
  try {
    post(**mailbox, borrowed, request);
    if (!ticket.ended()) {
      attend(*mailbox, request.root, ticket);
    } else if (const Rank peer = ticket.source();
               peer != kAnySource && (*mailbox)->has_work(peer)) {
      (*mailbox)->advance(peer);  // the peer waits for the room that this receive has made
    }
  } catch (const std::exception&) {
    verdict_.reach(current_error(describe(request)));
    pass_on_verdict(**mailbox);  // which ends the ticket, if it was posted
    ticket.fail(verdict_.cause());
  }
  const bool done = ticket.ended();
  if (done) {
    (*mailbox)->open_tickets().forget(borrowed);
  } else {
    ticket.reckon();
    (*mailbox)->open_tickets().reckoned(ticket);
    ++waiting_;
  }
  // Also to other operations: to what was accepted in passing, and to who relies on this call.
  if (waiting_ > 0 || (*mailbox)->is_busy()) call_loop();
  mailbox.reset();  // from here on the loop may end, unless this call is among those that wait
  if (!done) {
    await(ticket, interrupt_, verdict_);  // the loop ends it at its deadline
    mailbox_.with([&](Mailbox& m) {
      --waiting_;
      m.open_tickets().forget(borrowed);
    });
  }
  return ticket.result();
}

void MessageLoop::attend(Inside& mailbox, Rank peer, engine::Ticket& ticket) {
  if (attended_.load(kRelaxed)) {  // then that call sees to this one, too
    mailbox->advance();
    return;
  }
  struct Attending {
    explicit Attending(std::atomic<bool>& f) : flag(f) { flag.store(true, kRelaxed); }
    ~Attending() { flag.store(false, kRelaxed); }
    std::atomic<bool>& flag;
  };
  const Attending attending(attended_);
  calls_.store(calls_.load(kRelaxed) + 1, kRelaxed);
  Patience patience(cores_);
  // From then on the loop moves the data, and this call waits where it calls the interrupt.
  Deadline leave_at(TimePoint::max());
  for (int poll = 0;; ++poll) {
    const bool all = peer == kAnySource || poll % kPollsPerRound == 0;
    const bool moved = all ? mailbox->advance() : mailbox->advance(peer);
    if (ticket.ended() || verdict_.reached()) return;
    if (patience.is_time_for_deadline()) {
      if (ticket.reckon().passed() || leave_at.passed()) return;
      if (interrupt_ && leave_at.at() == TimePoint::max()) {
        leave_at = Deadline::after(kInterruptEvery);
      }
    }
    if (moved) patience.renew();
    if (!patience.wait()) return;
    mailbox.let_others_in();
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
      transport_.mail().wait(interests, Deadline(next));
    } catch (const std::exception&) {
      verdict_.reach(current_error("the exchange of messages"));
      std::this_thread::sleep_for(kPause);
    }
  }
}

TimePoint MessageLoop::round(std::vector<transport::Interest>& interests) noexcept {
  try {
    return try_round(interests);
  } catch (const std::exception&) {
    verdict_.reach(current_error("the exchange of messages"));
    interests.clear();
    return Clock::now() + kPause;
  }
}

TimePoint MessageLoop::try_round(std::vector<transport::Interest>& interests) {
  const bool has_napped = std::exchange(naps_, false);
  if (has_napped && attended_) return kAtOnce;  // a call moves everything
  if (!has_napped && is_attended()) {
    naps_ = true;
    return Clock::now() + kMailNap;
  }
  TimePoint next = TimePoint::max();
  const bool moved =
      mailbox_.with([&](Mailbox& mailbox) { return move(mailbox, interests, next); });
  return moved || has_napped ? kAtOnce : next;
}

bool MessageLoop::is_attended() {
  const std::uint64_t calls = calls_.load(kRelaxed);
  const bool attended = attended_.load(kRelaxed) || calls != calls_seen_;
  calls_seen_ = calls;
  if (called_.exchange(false) || busy_ || !attended || verdict_.reached()) return false;
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
  // First the verdict: the memory of what has failed is not to be touched.
  bool moved = pass_on_verdict(mailbox);
  moved |= mailbox.advance();
  check_deadlines(mailbox, next);
  moved |= pass_on_verdict(mailbox);
  mailbox.add_interests(interests);
  busy_ = mailbox.is_busy();
  const bool is_any_open = busy_ || mailbox.open_tickets().any();
  if (is_any_open) next = std::min(next, Clock::now() + transport::kLongestSleep);
  return moved;
}

/// The first time that the verdict is seen: ends what is open here and tells the peers.
bool MessageLoop::pass_on_verdict(Mailbox& mailbox) {
  if (!verdict_.reached() || mailbox.has_failed()) return false;
  mailbox.fail(verdict_.cause());
  mailbox.tell_abort(verdict_.cause());
  return true;
}

void MessageLoop::check_deadlines(Mailbox& mailbox, TimePoint& next) {
  for (const TicketPtr& ticket : mailbox.open_tickets().late(Clock::now())) {
    const std::optional<engine::MailCount> held = mailbox.held_behind(*ticket);
    verdict_.reach(Error(ErrorKind::kTimeout,
                         fmt::format("{} on rank {} has not met its other half within {} s{}{}",
                                     ticket->what(),
                                     self_,
                                     static_cast<double>(ticket->timeout().count()) / 1000.0,
                                     held ? engine::describe_held(ticket->peer(), *held) : "",
                                     whereabouts(ticket->peer()))));
  }
  next = std::min(next, mailbox.open_tickets().soonest());
}

/// "; rank 2 (pid 7 on b, over shm) is alive", and who else does not run.
std::string MessageLoop::whereabouts(Rank peer) const {
  std::string text;
  if (peer != kAnySource && peer != self_) {
    const std::string presence = transport::describe(transport_.presence(peer));
    text = fmt::format("; rank {} ({}){}{}",
                       peer,
                       transport_.describe(peer),
                       presence.empty() ? "" : " ",
                       presence);
  }
  return text + describe_halted(transport_, self_, ranks_, {&peer, 1});
}

void MessageLoop::lost(Rank peer) {
  reach_later(
      [this, peer, operation = recorder_.current()] { return lost_peers_.lost(peer, operation); });
}

void MessageLoop::left(Rank peer, Departure departure, const Error& error) {
  reach_later([this, peer, departure, error] {
    return lost_peers_.with_what_it_threw(peer, departure, error);
  });
}

/// The first lost peer decides the verdict; later ones change nothing.
void MessageLoop::reach_later(std::function<Error()> conclude) {
  try {
    conclusions_.start();
  } catch (const Error&) {
    // Without a thread `post` concludes here. What matters is the cause that the peers are told.
  }
  conclusions_.post([this, conclude = std::move(conclude)] {
    if (verdict_.reached()) return;
    try {
      verdict_.reach(conclude());
    } catch (const std::exception&) {
      verdict_.reach(current_error("the look for what became of a peer"));
    }
  });
}

void MessageLoop::tell_standing(std::span<const Rank> peers, const engine::Standing& standing) {
  mailbox_.with([&](Mailbox& mailbox) {
    for (const Rank peer : peers) mailbox.tell_standing(peer, standing);
  });
  call_loop();
}

// ---- leaving

void MessageLoop::give_up(const Error& cause, const Error& to_peers) {
  mailbox_.with([&](Mailbox& mailbox) {
    pass_on_verdict(mailbox);
    if (mailbox.has_failed()) return;
    verdict_.reach(cause);  // the loop passes it on only with the mailbox, which has failed then
    mailbox.fail(verdict_.cause());
    mailbox.tell_abort(to_peers);
  });
}

/// The farewell goes first: if two ranks leave with messages for each other, each hears that nobody
/// will receive them.
std::optional<Error> MessageLoop::leave(Departure departure,
                                        Deadline deadline,
                                        const Interrupt& interrupt) {
  mailbox_.with([&](Mailbox& mailbox) {
    pass_on_verdict(mailbox);
    mailbox.say_farewell(departure);
  });
  Deadline end(std::max(deadline.at(), Deadline::after(kLastWords).at()));
  Deadline ask = Deadline::after(kInterruptEvery);
  std::optional<Error> interrupted;
  std::optional<Bytes> left;  // of what the peers' systems have to acknowledge, once all is sent
  TimePoint moved = Clock::now();
  Patience patience(Cores::kShared);
  while (true) {
    const auto still = mailbox_.with([](Mailbox& mailbox) -> std::optional<Bytes> {
      mailbox.advance();
      if (!mailbox.is_sent()) return std::nullopt;
      return mailbox.unacknowledged();
    });
    const TimePoint now = Clock::now();
    if (still != std::exchange(left, still)) moved = now;
    const bool is_in_vain = left && now - moved >= kAcknowledged;
    if (left == 0_B || is_in_vain || end.passed(now)) break;
    if (!interrupted && ask.passed(now)) {
      try {
        let_interrupt(interrupt);
      } catch (const Interrupted& by) {
        interrupted = error_of(by);
        end = end.within(kLastWords);
      }
      ask = Deadline::after(kInterruptEvery);
    }
    if (!patience.wait()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  stop();
  return interrupted;
}

}  // namespace peal::native
