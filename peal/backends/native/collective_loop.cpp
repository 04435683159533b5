#include "peal/backends/native/collective_loop.h"

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "peal/backends/native/stopped_peers.h"
#include "peal/base/error.h"
#include "peal/system/thread.h"
#include "peal/transport/window/window.h"

namespace peal::native {
namespace {

using engine::Progress;

/// The longest sleep of a blocked collective before it checks for errors and deadlines again.
constexpr auto kNap = std::chrono::milliseconds(20);
/// The same if the collective must watch counters and the wire at once.
constexpr auto kShortNap = std::chrono::milliseconds(1);
/// A collective that is blocked for kTellAfter sends a progress report to the ranks that it waits
/// for, and repeats the report every kTellEvery.
constexpr auto kTellAfter = std::chrono::milliseconds(100);
constexpr auto kTellEvery = std::chrono::milliseconds(200);
/// How long to wait for the true cause when a stream has ended: the notice of the cause comes on
/// another link.
constexpr auto kWaitForCause = std::chrono::milliseconds(300);

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
  // A worker must not call this: two of them could wait for each other.
  for (const JobPtr& job : jobs) job->ticket().fail(parts_.group_error.cause());
  for (std::thread& worker : workers) worker.join();
  drain(Deadline(TimePoint::max()));
}

// ---- turns

void CollectiveLoop::run(const Request& request, Timeout timeout) {
  if (!take_turn()) {
    const JobPtr job = start(request, timeout);
    // the thread with the turn checks the deadline of this job
    await(job->ticket(), parts_.interrupt, parts_.group_error);
    if (const auto exception = job->exception()) std::rethrow_exception(exception);
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

StartedCollective::Ptr CollectiveLoop::start(const Request& request, Timeout timeout) {
  JobPtr job = StartedCollective::make(request, timeout);
  queue_.update([&](Queue& queue) {
    parts_.group_error.check();  // also throws if stopping: the group error was set before
    if (queue.draining) throw destroyed_error(parts_.group);
    close_quick_lock(queue);
    manage_worker(queue);
    queue.jobs.push(job);
  });
  return job;
}

bool CollectiveLoop::take_turn() {
  if (parts_.quick_lock.try_enter()) return true;
  return queue_.with([&](Queue& queue) {
    close_quick_lock(queue);
    if (queue.busy || queue.draining || !queue.jobs.empty()) return false;
    queue.busy = true;
    return true;
  });
}

void CollectiveLoop::end_turn() {
  if (parts_.quick_lock.try_leave()) return;
  queue_.update([&](Queue& queue) {
    queue.busy = false;
    open_quick_lock(queue);
  });
}

void CollectiveLoop::close_quick_lock(Queue& queue) {
  if (parts_.quick_lock.close()) queue.busy = true;
}

void CollectiveLoop::open_quick_lock(const Queue& queue) {
  const bool ends = queue.draining || queue.stopping;
  if (!queue.busy && queue.jobs.empty() && !ends) parts_.quick_lock.open();
}

bool CollectiveLoop::drain(Deadline deadline) {
  queue_.with([&](Queue& queue) {
    queue.draining = true;
    close_quick_lock(queue);
  });
  const auto idle = [](const Queue& queue) { return !queue.busy && queue.jobs.empty(); };
  return queue_.wait(deadline, idle, [](const Queue&) {});
}

void CollectiveLoop::work() {
  CoreShare share(parts_.cpus);
  while (const JobPtr job = next_job()) {
    std::optional<Error> failure;
    try {
      carry_out(job->request(),
                {job->ticket().timeout(), job->ticket().deadline()},
                parts_.cores == Cores::kOwn ? Backoff(share) : Backoff(Cores::kShared));
    } catch (const Error& error) {
      failure = error;
    }
    end(*job, failure);
  }
}

/// The turn ends before watchers are notified of the end, because they may want the next turn.
void CollectiveLoop::end(StartedCollective& job, const std::optional<Error>& failure) {
  queue_.update([&](Queue& queue) {
    queue.busy = false;
    open_quick_lock(queue);
  });
  if (failure) {
    job.ticket().set_failure(*failure);
  } else {
    job.ticket().set_success(job.request().root);
  }
  if (job.ticket().is_watched()) tell_watchers(job.ticket());
}

/// A watcher may use this thread to wait for another operation of this group, even for an operation
/// that was started earlier. So this thread does not count as a worker meanwhile.
void CollectiveLoop::tell_watchers(mail::Ticket& ticket) {
  const Fifo<JobPtr> lost = queue_.update([&](Queue& queue) {
    ++queue.away;
    try {
      if (!queue.jobs.empty() && !queue.stopping) manage_worker(queue);
    } catch (const std::exception&) {
      parts_.group_error.set(current_error("the start of a thread"));
      return std::exchange(queue.jobs, {});
    }
    return Fifo<JobPtr>();
  });
  for (const JobPtr& job : lost) job->ticket().fail(parts_.group_error.cause());
  ticket.tell_watchers();
  queue_.with([](Queue& queue) { --queue.away; });
}

void CollectiveLoop::manage_worker(Queue& queue) {
  if (queue.workers.size() > queue.away) return;
  queue.workers.reserve(queue.workers.size() + 1);
  queue.workers.push_back(start_thread([this] { work(); }));
}

CollectiveLoop::JobPtr CollectiveLoop::next_job() {
  JobPtr next;
  const auto ready = [](const Queue& queue) {
    return !queue.busy && (queue.stopping || !queue.jobs.empty());
  };
  queue_.wait(Deadline(TimePoint::max()), ready, [&](Queue& queue) {
    if (queue.jobs.empty()) return;
    next = queue.jobs.pop();
    queue.busy = true;
  });
  return next;
}

// ---- one collective

void CollectiveLoop::carry_out(const Request& request, Due due, Backoff backoff) {
  parts_.group_error.check();
  try {
    collective_.begin(maker_.make(request));
    tell_from_ = TimePoint::max();
    compare_progress_reports();
    CollectiveRecord record(parts_.recorder, collective_.fingerprint());
    try {
      drive(due, backoff, record);
    } catch (const engine::PeerClosed& end) {
      record.waits_for(end.peer);
      throw;
    } catch (const std::exception&) {
      record_missing_rank(record);
      throw with_operation(current_error(describe(request)), current());
    }
  } catch (const engine::PeerClosed& end) {
    parts_.group_error.set(closed(end.peer));
  } catch (const std::exception&) {
    parts_.group_error.set(current_error(describe(request)));
  }
  if (parts_.group_error.is_set()) {
    collective_.abandon();
    parts_.group_error.check();
  }
}

void CollectiveLoop::drive(Due& due, Backoff& backoff, CollectiveRecord& record) {
  while (true) {
    const Progress progress = collective_.advance();
    if (progress == Progress::kDone) return record.done();
    parts_.group_error.check();
    if (progress == Progress::kMoved) {
      if (backoff.is_time_for_deadline()) {
        check_deadlines(due);
        interrupt_now_and_then(due);
      }
      record.moved();
      backoff.renew();
      continue;
    }
    record.blocked();
    if (backoff.wait()) continue;
    record_missing_rank(record);
    check_deadlines(due);
    look_around();
    if (due.interrupt != nullptr) set_if_interrupted(parts_.group_error, *due.interrupt);
    sleep(due.at());
  }
}

/// Called before the operation sleeps and when it fails: `peal why` names the rank that it waits
/// for.
void CollectiveLoop::record_missing_rank(CollectiveRecord& record) const {
  const std::vector<Rank>& missing = collective_.waiting_for();
  if (!missing.empty()) record.waits_for(missing.front());
}

void CollectiveLoop::sleep(Deadline deadline) {
  const engine::Blocked& blocked = collective_.blocked();
  if (blocked.counter && blocked.interests.empty()) {
    const auto [rank, turn, value] = *blocked.counter;
    parts_.transport.window()->sleep_until(rank, turn, value, deadline.within(kNap));
    return;
  }
  if (blocked.holds_back) return collective_.raise_limit();  // now is the time to send
  const auto nap = blocked.counter ? kShortNap : kNap;
  parts_.transport.data().wait(blocked.interests, deadline.within(nap));
}

void CollectiveLoop::look_around() {
  collective_.compare_entries();
  compare_progress_reports();
  send_progress_report();
  if (!collective_.blocked().counter) return;  // the wire itself reports its end
  const std::vector<Rank>& missing = collective_.waiting_for();
  const auto gone = std::ranges::find_if(
      missing, [this](Rank rank) { return parts_.departure(rank).has_value(); });
  if (gone == missing.end()) return;
  // The rank may have done its share before it left. The share is visible by now.
  const Rank rank = *gone;
  if (std::ranges::binary_search(collective_.waiting_for(), rank)) throw engine::PeerClosed{rank};
}

void CollectiveLoop::compare_progress_reports() {
  if (parts_.progress_reports.has_some())
    parts_.progress_reports.judge(parts_.self, collective_.history());
}

void CollectiveLoop::send_progress_report() {
  const TimePoint now = Clock::now();
  if (tell_from_ == TimePoint::max()) tell_from_ = now + kTellAfter;
  if (now < tell_from_) return;
  tell_from_ = now + kTellEvery;
  parts_.send_progress_report(collective_.waiting_for(), collective_.history().report());
}

/// If another thread has the turn, that thread compares the reports itself.
void CollectiveLoop::check_progress_reports() {
  if (!parts_.quick_lock.try_enter()) return;
  try {
    compare_progress_reports();
  } catch (const std::exception&) {
    parts_.group_error.set(
        current_error("the comparison of this rank's operations with its peers'"));
  }
  end_turn();
}

/// The operation under way, for errors; its names, if it serves operations by name.
std::string CollectiveLoop::current() const {
  return parts_.recorder.in_words(collective_.describe());
}

Error CollectiveLoop::closed(Rank peer) {
  const Deadline deadline = Deadline::after(kWaitForCause);
  while (!parts_.group_error.is_set() && !parts_.departure(peer) && !deadline.passed()) {
    std::this_thread::sleep_for(kShortNap);
  }
  if (parts_.group_error.is_set()) return parts_.group_error.cause();
  const std::optional<Departure> departure = parts_.departure(peer);
  return departure ? parts_.lost_peers.left(peer, *departure, current())
                   : parts_.lost_peers.lost(peer, current());
}

void CollectiveLoop::check_deadlines(Due& due) {
  const TimePoint now = Clock::now();
  if (due.at().passed(now)) throw timed_out(due.timeout);
  const JobPtr late = queue_.with([&](const Queue& queue) {
    const auto found = std::find_if(queue.jobs.begin(), queue.jobs.end(), [&](const JobPtr& job) {
      return job->ticket().deadline().passed(now);
    });
    return found != queue.jobs.end() ? *found : nullptr;
  });
  if (late) throw never_begun(late->ticket());
}

void CollectiveLoop::interrupt_now_and_then(Due& due) {
  if (due.interrupt == nullptr || !*due.interrupt) return;
  if (due.next_interrupt && due.next_interrupt->passed()) {
    set_if_interrupted(parts_.group_error, *due.interrupt);
    due.next_interrupt.reset();
  }
  if (!due.next_interrupt) due.next_interrupt = Deadline::after(kInterruptEvery);
}

Error CollectiveLoop::never_begun(const mail::Ticket& late) const {
  return Error(
      ErrorKind::kTimeout,
      fmt::format("{} on rank {} of the group {} has not begun within {} s, behind {}, which waits "
                  "for {}",
                  late.what(),
                  parts_.self,
                  parts_.group,
                  static_cast<double>(late.timeout().count()) / 1000.0,
                  current(),
                  missing_ranks_text()),
      details_of_missing());
}

Error CollectiveLoop::timed_out(Timeout timeout) const {
  return Error(
      ErrorKind::kTimeout,
      fmt::format("{} on rank {} of the group {} has not ended within {} s. Waiting for {}",
                  current(),
                  parts_.self,
                  parts_.group,
                  static_cast<double>(timeout.count()) / 1000.0,
                  missing_ranks_text()),
      details_of_missing());
}

ErrorDetails CollectiveLoop::details_of_missing() const {
  const std::vector<Rank>& missing = collective_.waiting_for();
  if (missing.empty()) return {.operation = current()};
  return parts_.lost_peers.details_of_missing(missing.front(), current());
}

std::string CollectiveLoop::missing_ranks_text() const {
  const std::vector<Rank> missing = collective_.waiting_for();
  return collective_.describe_missing() +
         describe_stopped_peers(parts_.transport, parts_.self, parts_.ranks, missing);
}

}  // namespace peal::native
