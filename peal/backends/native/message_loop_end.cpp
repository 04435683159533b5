// How a message loop ends: it loses a peer, gives up, leaves or stops.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "peal/backends/native/message_loop.h"
#include "peal/base/clock.h"
#include "peal/base/error.h"
#include "peal/base/interrupt.h"

namespace peal::native {
namespace {

using mail::Mailbox;

/// A rank whose deadline has passed still gets this time to send why it leaves.
constexpr auto kLeaveGrace = std::chrono::milliseconds(200);

/// How long to wait without any new acknowledgement. The systems of peers that are gone never
/// acknowledge.
constexpr auto kAcknowledged = std::chrono::seconds(1);

}  // namespace

// ---- lost peers

void MessageLoop::lost(Rank peer) {
  set_later([this, peer, operation = parts_.recorder.current()] {
    return parts_.lost_peers.lost(peer, operation);
  });
}

void MessageLoop::left(Rank peer, Departure departure, const Error& error) {
  set_later([this, peer, departure, error] {
    return parts_.lost_peers.with_what_it_threw(peer, departure, error);
  });
}

/// The first lost peer determines the group error; later losses change nothing.
void MessageLoop::set_later(std::function<Error()> conclude) {
  try {
    conclusions_.start();
  } catch (const Error&) {
    // Without a thread, `post` concludes on the calling thread. The cause for the peers matters
    // more than the delay.
  }
  conclusions_.post([this, conclude = std::move(conclude)] {
    if (parts_.group_error.is_set()) return;
    try {
      parts_.group_error.set(conclude());
    } catch (const std::exception&) {
      parts_.group_error.set(current_error("the search for how a peer ended"));
    }
  });
}

// ---- leaving

void MessageLoop::give_up(const Error& cause, const Error& to_peers) {
  mailbox_.with([&](Mailbox& mailbox) {
    pass_on_group_error(mailbox);
    if (mailbox.has_failed()) return;
    // the loop forwards it only while it holds the mailbox, which has failed then
    parts_.group_error.set(cause);
    mailbox.fail(parts_.group_error.cause());
    mailbox.tell_abort(to_peers);
  });
}

/// The notice of departure goes first: if two ranks leave with messages for each other, each learns
/// that the other will not receive them.
std::optional<Error> MessageLoop::leave(Departure departure,
                                        Deadline deadline,
                                        const Interrupt& interrupt) {
  mailbox_.with([&](Mailbox& mailbox) {
    pass_on_group_error(mailbox);
    mailbox.send_leave(departure);
  });
  Deadline end(std::max(deadline.at(), Deadline::after(kLeaveGrace).at()));
  Deadline ask = Deadline::after(kInterruptEvery);
  std::optional<Error> interrupted;
  std::optional<Bytes> left;  // bytes that the peers' systems must acknowledge, once all is sent
  TimePoint moved = Clock::now();
  Backoff backoff(Cores::kShared);
  bool links = true;  // whether new links may come
  while (true) {
    const auto still = mailbox_.with([](Mailbox& mailbox) -> std::optional<Bytes> {
      mailbox.advance();
      if (!mailbox.is_sent()) return std::nullopt;
      return mailbox.unacknowledged();
    });
    if (still && std::exchange(links, false)) {
      parts_.transport.stop_linking();
      continue;  // a link that was made just now must carry the notice, too
    }
    const TimePoint now = Clock::now();
    if (still != std::exchange(left, still)) moved = now;
    const bool is_stalled = left && now - moved >= kAcknowledged;
    if (left == 0_B || is_stalled || end.passed(now)) break;
    if (!interrupted && ask.passed(now)) {
      try {
        let_interrupt(interrupt);
      } catch (const Interrupted& by) {
        interrupted = error_of(by);
        end = end.within(kLeaveGrace);
      }
      ask = Deadline::after(kInterruptEvery);
    }
    if (!backoff.wait()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (links) {  // the deadline has passed
    parts_.transport.stop_linking();
    mailbox_.with([](Mailbox& mailbox) { mailbox.advance(); });
  }
  stop();
  return interrupted;
}

void MessageLoop::stop() {
  stopping_.store(true, std::memory_order_release);
  if (shared_) {
    shared_->mail_thread.remove(*this);
  } else {
    parts_.transport.mail().interrupt();
    if (thread_.joinable()) thread_.join();
  }
  conclusions_.close();
  // Nothing moves open messages any more, so the calls that wait for them must get an error.
  const Error cause =
      parts_.group_error.is_set()
          ? parts_.group_error.cause()
          : Error(ErrorKind::kUsage, "the group was destroyed while messages were open");
  mailbox_.with([&](Mailbox& mailbox) { mailbox.fail(cause); });
  // A polling call releases the mailbox for a moment and locks it again, even if it will not wait
  // afterwards.
  const auto has_calls = [&](const Mailbox&) {
    return waiting_ > 0 || has_poller_.load(std::memory_order_relaxed);
  };
  while (mailbox_.with(has_calls)) std::this_thread::yield();
}

}  // namespace peal::native
