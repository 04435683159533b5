#include "peal/backends/native/collective_loop.h"

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "peal/backends/native/halted.h"
#include "peal/base/error.h"
#include "peal/base/thread.h"
#include "peal/transport/window.h"

namespace peal::native {
namespace {

using engine::Progress;
using engine::TicketPtr;

/// How long a blocked collective sleeps before it looks around again.
constexpr auto kNap = std::chrono::milliseconds(20);
/// As short as that where it must watch counters and the wire at once.
constexpr auto kShortNap = std::chrono::milliseconds(1);
/// How long a collective is blocked before it tells those whom it waits for where it stands, and
/// how often it does.
constexpr auto kTellAfter = std::chrono::milliseconds(100);
constexpr auto kTellEvery = std::chrono::milliseconds(200);
/// How long to wait for the true cause when a stream has ended: the news travels on another link.
constexpr auto kNewsTravels = std::chrono::milliseconds(300);

}  // namespace

CollectiveLoop::CollectiveLoop(Parts parts)
    : parts_(std::move(parts)),
      maker_(parts_.ranks),
      collective_(parts_.self, parts_.ranks, parts_.transport, parts_.planner, parts_.stage) {}

CollectiveLoop::~CollectiveLoop() { stop(); }

void CollectiveLoop::stop() {
  auto [workers, jobs] = queue_.update([](Queue& queue) {
    queue.stopping = true;
    return std::pair(std::exchange(queue.workers, {}), std::exchange(queue.jobs, {}));
  });
  // Not by a worker: each may wait for one of them.
  for (const Job& job : jobs) job.ticket->fail(parts_.verdict.cause());
  for (std::thread& worker : workers) worker.join();
  drain(Deadline(TimePoint::max()));
}

// ---- turns

void CollectiveLoop::run(const Request& request, Timeout timeout) {
  if (!take_turn()) {
    const TicketPtr ticket = start(request, timeout);
    await(*ticket, parts_.interrupt, parts_.verdict);  // whoever has the turn minds its deadline
    if (const auto exception = ticket->exception()) std::rethrow_exception(exception);
    return;
  }
  try {
    run_inside(request, timeout);
  } catch (...) {
    end_turn();
    throw;
  }
  end_turn();
}

TicketPtr CollectiveLoop::start(const Request& request, Timeout timeout) {
  auto ticket = std::make_shared<engine::Ticket>(describe(request), timeout);
  queue_.update([&](Queue& queue) {
    parts_.verdict.check();  // also if stopping: it was reached before
    if (queue.draining)
      throw Error(ErrorKind::kUsage, "the group " + parts_.group + " has been destroyed");
    close_gate(queue);
    see_to_worker(queue);
    queue.jobs.push_back({OwnedRequest(request), ticket});
  });
  return ticket;
}

bool CollectiveLoop::take_turn() {
  if (parts_.gate.try_enter()) return true;
  return queue_.with([&](Queue& queue) {
    close_gate(queue);
    if (queue.busy || queue.draining || !queue.jobs.empty()) return false;
    queue.busy = true;
    return true;
  });
}

void CollectiveLoop::end_turn() {
  if (parts_.gate.try_leave()) return;
  queue_.update([&](Queue& queue) {
    queue.busy = false;
    open_gate(queue);
  });
}

void CollectiveLoop::close_gate(Queue& queue) {
  if (parts_.gate.close()) queue.busy = true;
}

void CollectiveLoop::open_gate(const Queue& queue) {
  const bool ends = queue.draining || queue.stopping;
  if (!queue.busy && queue.jobs.empty() && !ends) parts_.gate.open();
}

bool CollectiveLoop::drain(Deadline deadline) {
  queue_.with([&](Queue& queue) {
    queue.draining = true;
    close_gate(queue);
  });
  const auto idle = [](const Queue& queue) { return !queue.busy && queue.jobs.empty(); };
  return queue_.wait(deadline, idle, [](const Queue&) {});
}

void CollectiveLoop::work() {
  CoreShare share(parts_.cpus);
  while (const std::optional<Job> job = next_job()) {
    std::optional<Error> failure;
    try {
      carry_out(job->request.get(),
                {job->ticket->timeout(), job->ticket->deadline()},
                parts_.cores == Cores::kOwn ? Patience(share) : Patience(Cores::kShared));
    } catch (const Error& error) {
      failure = error;
    }
    end(*job, failure);
  }
}

/// The turn is over before anybody hears of the end, and may want the next.
void CollectiveLoop::end(const Job& job, const std::optional<Error>& failure) {
  queue_.update([&](Queue& queue) {
    queue.busy = false;
    open_gate(queue);
  });
  if (failure) {
    job.ticket->fail_untold(*failure);
  } else {
    job.ticket->succeed_untold(job.request.get().root);
  }
  if (job.ticket->is_watched()) tell_watchers(*job.ticket);
}

/// Whoever hears of the end may wait on this very thread for more of this group, be it what was
/// asked for before: so the thread is none of those that carry out jobs meanwhile.
void CollectiveLoop::tell_watchers(engine::Ticket& ticket) {
  const std::deque<Job> lost = queue_.update([&](Queue& queue) {
    ++queue.away;
    try {
      if (!queue.jobs.empty() && !queue.stopping) see_to_worker(queue);
    } catch (const std::exception&) {
      parts_.verdict.reach(current_error("the start of a thread"));
      return std::exchange(queue.jobs, {});
    }
    return std::deque<Job>();
  });
  for (const Job& job : lost) job.ticket->fail(parts_.verdict.cause());
  ticket.tell_watchers();
  queue_.with([](Queue& queue) { --queue.away; });
}

void CollectiveLoop::see_to_worker(Queue& queue) {
  if (queue.workers.size() > queue.away) return;
  queue.workers.reserve(queue.workers.size() + 1);
  queue.workers.push_back(start_thread([this] { work(); }));
}

std::optional<CollectiveLoop::Job> CollectiveLoop::next_job() {
  std::optional<Job> next;
  const auto ready = [](const Queue& queue) {
    return !queue.busy && (queue.stopping || !queue.jobs.empty());
  };
  queue_.wait(Deadline(TimePoint::max()), ready, [&](Queue& queue) {
    if (queue.jobs.empty()) return;
    next = std::move(queue.jobs.front());
    queue.jobs.pop_front();
    queue.busy = true;
  });
  return next;
}

// ---- one collective

void CollectiveLoop::carry_out(const Request& request, Due due, Patience patience) {
  parts_.verdict.check();
  try {
    collective_.begin(maker_.make(request));
    tell_from_ = TimePoint::max();
    compare_standings();
    CollectiveRecord record(parts_.recorder, collective_.fingerprint());
    try {
      drive(due, patience, record);
    } catch (const engine::PeerClosed& end) {
      record.waits_for(end.peer);
      throw;
    } catch (const std::exception&) {
      record_missing_rank(record);
      throw;
    }
  } catch (const engine::PeerClosed& end) {
    parts_.verdict.reach(closed(end.peer));
  } catch (const std::exception&) {
    parts_.verdict.reach(current_error(describe(request)));
  }
  if (parts_.verdict.reached()) {
    collective_.abandon();
    parts_.verdict.check();
  }
}

void CollectiveLoop::drive(Due& due, Patience& patience, CollectiveRecord& record) {
  while (true) {
    const Progress progress = collective_.advance();
    if (progress == Progress::kDone) return record.done();
    parts_.verdict.check();
    if (progress == Progress::kMoved) {
      if (patience.is_time_for_deadline()) {
        check_deadlines(due);
        interrupt_now_and_then(due);
      }
      record.moved();
      patience.renew();
      continue;
    }
    record.blocked();
    if (patience.wait()) continue;
    record_missing_rank(record);
    check_deadlines(due);
    look_around();
    if (due.interrupt != nullptr) reach_if_interrupted(parts_.verdict, *due.interrupt);
    sleep(due.at());
  }
}

/// Before the operation sleeps, and when it fails: `peal why` names the rank that it waits for.
void CollectiveLoop::record_missing_rank(CollectiveRecord& record) const {
  const std::vector<Rank> missing = collective_.waiting_for();
  if (!missing.empty()) record.waits_for(missing.front());
}

void CollectiveLoop::sleep(Deadline deadline) {
  const engine::Blocked& blocked = collective_.blocked();
  if (blocked.counter && blocked.interests.empty()) {
    const auto [rank, turn, value] = *blocked.counter;
    parts_.transport.window()->sleep_until(rank, turn, value, deadline.within(kNap));
    return;
  }
  if (blocked.holds_back) return collective_.relent();  // there is time to send
  const auto nap = blocked.counter ? kShortNap : kNap;
  parts_.transport.data().wait(blocked.interests, deadline.within(nap));
}

void CollectiveLoop::look_around() {
  collective_.compare_entries();
  compare_standings();
  tell_standing();
  if (!collective_.blocked().counter) return;  // the wire tells of its own end
  for (const Rank rank : collective_.waiting_for()) {
    if (!parts_.departure(rank)) continue;
    // It may have done its share before it left: what it signalled is visible by now.
    const std::vector<Rank> still = collective_.waiting_for();
    if (std::find(still.begin(), still.end(), rank) != still.end()) throw engine::PeerClosed{rank};
  }
}

void CollectiveLoop::compare_standings() {
  if (parts_.standings.has_some()) parts_.standings.judge(parts_.self, collective_.history());
}

void CollectiveLoop::tell_standing() {
  const TimePoint now = Clock::now();
  if (tell_from_ == TimePoint::max()) tell_from_ = now + kTellAfter;
  if (now < tell_from_) return;
  tell_from_ = now + kTellEvery;
  parts_.tell_standing(collective_.waiting_for(), collective_.history().standing());
}

/// Whoever has the turn looks at them itself.
void CollectiveLoop::look_at_standings() {
  if (!parts_.gate.try_enter()) return;
  try {
    compare_standings();
  } catch (const std::exception&) {
    parts_.verdict.reach(current_error("the look at what peers are in"));
  }
  end_turn();
}

Error CollectiveLoop::closed(Rank peer) {
  const Deadline deadline = Deadline::after(std::chrono::milliseconds(kNewsTravels));
  while (!parts_.verdict.reached() && !parts_.departure(peer) && !deadline.passed()) {
    std::this_thread::sleep_for(kShortNap);
  }
  if (parts_.verdict.reached()) return parts_.verdict.cause();
  const std::optional<Departure> departure = parts_.departure(peer);
  return departure ? parts_.lost_peers.left(peer, *departure, collective_.describe())
                   : parts_.lost_peers.lost(peer, collective_.describe());
}

void CollectiveLoop::check_deadlines(Due& due) {
  const TimePoint now = Clock::now();
  if (due.at().passed(now)) throw timed_out(due.timeout);
  const TicketPtr late = queue_.with([&](const Queue& queue) {
    const auto found = std::find_if(queue.jobs.begin(), queue.jobs.end(), [&](const Job& job) {
      return job.ticket->deadline().passed(now);
    });
    return found != queue.jobs.end() ? found->ticket : nullptr;
  });
  if (late) throw never_begun(*late);
}

void CollectiveLoop::interrupt_now_and_then(Due& due) {
  if (due.interrupt == nullptr || !*due.interrupt) return;
  if (due.next_interrupt && due.next_interrupt->passed()) {
    reach_if_interrupted(parts_.verdict, *due.interrupt);
    due.next_interrupt.reset();
  }
  if (!due.next_interrupt) due.next_interrupt = Deadline::after(kInterruptEvery);
}

Error CollectiveLoop::never_begun(const engine::Ticket& late) const {
  return Error(
      ErrorKind::kTimeout,
      fmt::format("{} on rank {} of the group {} has not begun within {} s, behind {}, which waits "
                  "for {}",
                  late.what(),
                  parts_.self,
                  parts_.group,
                  static_cast<double>(late.timeout().count()) / 1000.0,
                  collective_.describe(),
                  who_is_missing()));
}

Error CollectiveLoop::timed_out(Timeout timeout) const {
  return Error(
      ErrorKind::kTimeout,
      fmt::format("{} on rank {} of the group {} has not ended within {} s. Waiting for {}",
                  collective_.describe(),
                  parts_.self,
                  parts_.group,
                  static_cast<double>(timeout.count()) / 1000.0,
                  who_is_missing()));
}

std::string CollectiveLoop::who_is_missing() const {
  const std::vector<Rank> missing = collective_.waiting_for();
  return collective_.describe_missing() +
         describe_halted(parts_.transport, parts_.self, parts_.ranks, missing);
}

}  // namespace peal::native
