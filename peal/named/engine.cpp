#include "peal/named/engine.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/named/execution.h"
#include "peal/named/rounds.h"
#include "peal/named/same_options.h"

namespace peal::named {
namespace {

/// If the backend makes no asynchronous progress: how long asynchronous operations wait for a
/// thread of the program that runs the rounds. An earlier background thread would only slow down
/// the program.
constexpr Duration kPatience = std::chrono::milliseconds(10);

/// The pause after a round in which nothing was decided. A rank enters the next round when it has
/// submitted an operation, or after an eighth of the time since the last decision, within these
/// limits.
constexpr Duration kShortestPause = std::chrono::microseconds(20);
constexpr Duration kLongestPause = std::chrono::milliseconds(10);

std::vector<Rank> global_ranks_of(const ProcessGroup& group) {
  std::vector<Rank> ranks;
  for (Rank rank = 0; rank < group.size(); ++rank) ranks.push_back(group.global_rank(rank));
  return ranks;
}

AgreementOptions agreement_options(const Options& options) {
  return {
      .fusion_threshold = options.fusion_threshold,
      .cache_capacity = static_cast<std::size_t>(std::max(options.cache_capacity, 0)),
      .fuses_groups_with_others = options.group_fusion == Options::GroupFusion::kWithOthers,
      .runs_all_kinds_while_joined = options.while_joined == Options::WhileJoined::kAll,
  };
}

/// Converts the exception to the error that ends the group.
Error as_error(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const Error& error) {
    return error;
  } catch (const std::exception& caught) {
    return Error(ErrorKind::kAborted,
                 fmt::format("an operation by name failed: {}", caught.what()),
                 ErrorDetails{.cause = ErrorCause::kThrew, .reason = caught.what()});
  } catch (...) {
    return Error(ErrorKind::kAborted, "an operation by name was interrupted");
  }
}

}  // namespace

NamedOperations::Engine::Engine(ProcessGroupPtr group, Options options)
    : group_(std::move(group)),
      options_(std::move(options)),
      is_eager_(group_->capabilities().asynchronous_progress),
      state_(group_->flight_notes()),
      agreement_(global_ranks_of(*group_), agreement_options(options_)),
      background_({.run = [this] { work(); },
                   .is_left =
                       [this] {
                         return state_.with([](const State& state) { return state.has_work(); });
                       }}) {
  require_same(*group_, options_);
  if (options_.stall_warning.count() > 0 && group_->size() > 1) {
    std::vector<Rank> all(static_cast<std::size_t>(group_->size()));
    std::iota(all.begin(), all.end(), 0);
    stall_watch_.emplace(StallWatch::Parts{
        .group = group_->new_group(all),
        .warning = options_.stall_warning,
        .shutdown = options_.stall_shutdown,
        .report = options_.report,
        .abort = [this](const std::string& reason) { group_->abort(reason); },
        .stalled =
            [this] {
              return state_.with([this](const State& state) {
                return state.pending.stalled(Clock::now(), options_.stall_warning);
              });
            },
        .standing =
            [this](const std::vector<std::string>& names) {
              return state_.with([&](const State& state) { return state.pending.standing(names); });
            },
        .whereabouts = options_.whereabouts,
    });
  }
}

NamedOperations::Engine::~Engine() {
  stall_watch_.reset();
  // Without pending operations, a thread that still has the turn enters no further round.
  const bool is_busy = state_.update([](State& state) {
    state.is_closed = true;
    return !state.pending.empty();
  });
  if (is_busy) group_->abort("Horovod has been shut down while operations were pending");
  background_.stop();
  end_with(std::make_exception_ptr(Error(ErrorKind::kAborted, "Horovod has been shut down")));
  fail_all();
}

void NamedOperations::Engine::check_process() const {
  if (owner_.is_current()) return;
  throw Error(ErrorKind::kUsage,
              fmt::format("this process was forked from rank {} of the group {}, and cannot "
                          "use its operations: call shutdown and init in the child, or use the "
                          "operation in the parent",
                          group_->rank(),
                          group_->name()));
}

/// Called before an operation is in flight. So if a thread cannot start, no operation has started.
void NamedOperations::Engine::start_threads(Waits waits) {
  if (stall_watch_) stall_watch_->start();
  if (waits == Waits::kLater) background_.start();
}

void NamedOperations::Engine::submit(std::span<const OperationPtr> operations, Waits waits) {
  check_process();
  start_threads(waits);
  state_.update([&](State& state) {
    state.throw_if_ended();
    state.pending.add(operations);
  });
  if (waits == Waits::kLater) background_.wake();
}

void NamedOperations::Engine::wait(const Operation& operation) {
  if (!operation.is_completed()) {
    check_process();
    wait_until([&](const State&) { return operation.is_completed(); });
  }
  if (!operation.error()) return;
  throw_interruption();
  std::rethrow_exception(operation.error());
}

bool NamedOperations::Engine::poll(const Operation& operation) {
  if (operation.is_completed()) return true;
  check_process();
  background_.wake();
  return false;
}

Rank NamedOperations::Engine::join() {
  check_process();
  const std::uint64_t before = state_.update([](State& state) {
    state.throw_if_ended();
    state.pending.join();
    return state.joins;
  });
  const auto has_ended = [before](const State& state) { return state.joins != before; };
  wait_until([&](const State& state) { return has_ended(state) || state.ended_by; });
  const auto last = state_.with([&](const State& state) {
    return has_ended(state) ? std::optional(state.last_joined) : std::nullopt;
  });
  if (last) return *last;
  throw_interruption();
  throw Error(*state_.with([](const State& state) { return state.ended_by; }));
}

std::uint64_t NamedOperations::Engine::joins() const {
  return state_.with([](const State& state) { return state.joins; });
}

std::exception_ptr NamedOperations::Engine::ended_by() const {
  return state_.with([](const State& state) {
    return state.ended_by ? std::make_exception_ptr(Error(*state.ended_by)) : nullptr;
  });
}

// ---- the turn

/// Returns when `done(state)` is true. Runs the rounds, unless another thread does.
template <class Done>
void NamedOperations::Engine::wait_until(Done&& done) {
  while (true) {
    bool drives = false;
    const auto can_go_on = [&](const State& state) { return done(state) || !state.is_driven; };
    const auto go_on = [&](State& state) {
      drives = !done(state);
      if (drives) state.is_driven = true;
    };
    try {
      wait_or_interrupt(Deadline(TimePoint::max()), options_.interrupt, [&](Deadline slice) {
        return state_.wait(slice, can_go_on, go_on);
      });
    } catch (const Interrupted& interrupted) {
      end_with(std::make_exception_ptr(error_of(interrupted)));
      const auto is_free = [](const State& state) { return !state.is_driven; };
      state_.wait(Deadline(TimePoint::max()), is_free, [](const State&) {});
      fail_all();
      std::rethrow_exception(interrupted.cause);
    }
    if (!drives) return;
    drive_until([&] { return state_.with(done); });
  }
}

/// For the thread with the turn; ends the turn. An Error is not thrown: all pending operations get
/// it. Throws exceptions of the user (interrupts of the program and of the group) and of
/// allocations.
template <class Done>
void NamedOperations::Engine::drive_until(Done&& done) {
  const auto end = [this](const std::exception_ptr& error) {
    end_with(error);
    fail_all();
    end_turn();
  };
  try {
    std::optional<TimePoint> idle_since;
    while (!done()) {
      if (run_round()) {
        idle_since.reset();
      } else {
        if (!idle_since) idle_since = Clock::now();
        pause(*idle_since);
      }
    }
  } catch (const Interrupted& interrupted) {
    end(std::make_exception_ptr(error_of(interrupted)));
    std::rethrow_exception(interrupted.cause);
  } catch (const Error&) {
    return end(std::current_exception());
  } catch (...) {
    end(std::current_exception());
    throw;
  }
  end_turn();
}

void NamedOperations::Engine::end_turn() {
  const bool is_left = state_.update([](State& state) {
    state.is_driven = false;
    return state.has_work();
  });
  if (!is_left) return;
  try {
    background_.wake();
  } catch (const Error&) {
    // A start can fail only if all remaining operations are blocking. Their callers run the rounds.
  }
}

void NamedOperations::Engine::pause(TimePoint idle_since) {
  const TimePoint now = Clock::now();
  const Duration pause = std::clamp((now - idle_since) / 8, kShortestPause, kLongestPause);
  const auto has_news = [](const State& state) {
    return state.pending.has_incoming() || state.ended_by || state.is_closed;
  };
  state_.wait(Deadline(now + pause), has_news, [](const State&) {});
  let_interrupt(options_.interrupt);
}

/// Returns whether an operation has waited too long for a thread that waits for it.
bool NamedOperations::Engine::wait_patiently() {
  while (true) {
    std::optional<TimePoint> oldest;
    state_.with([&](const State& state) {
      if (state.has_work()) oldest = state.pending.oldest();
    });
    if (!oldest) return false;
    const TimePoint due = std::max(*oldest, background_turn_) + kPatience;
    if (due <= Clock::now()) break;
    if (background_.sleep(Deadline(due))) return false;
  }
  background_turn_ = Clock::now();
  return true;
}

/// The work of the background thread. Runs rounds until nothing is pending, or until the ranks have
/// to wait for the program.
void NamedOperations::Engine::work() {
  if (!is_eager_ && !wait_patiently()) return;
  bool drives = false;
  state_.wait(
      Deadline(TimePoint::max()),
      [](const State& state) { return !state.is_driven || !state.has_work(); },
      [&](State& state) {
        drives = state.has_work();
        if (drives) state.is_driven = true;
      });
  if (!drives) return;
  try {
    bool has_changed = true;
    drive_until([&] {
      return state_.with([&](const State& state) {
        const bool is_done = !state.has_work() || (!is_eager_ && !has_changed);
        has_changed = state.pending.has_incoming();
        return is_done;
      });
    });
  } catch (...) {
    state_.update([](State& state) { state.interruption = std::current_exception(); });
  }
}

// ---- a round

/// Returns whether the round has changed something.
bool NamedOperations::Engine::run_round() {
  bool joins = false;
  const std::vector<OperationPtr> incoming = state_.with([&](State& state) {
    state.throw_if_ended();
    joins = state.pending.take_join();
    return state.pending.take_incoming();
  });
  for (const OperationPtr& operation : incoming) agreement_.add(operation->request());
  if (joins) agreement_.join();
  options_.timeline->with([&](Timeline& timeline) {
    timeline.round_began();
    for (const OperationPtr& operation : incoming) {
      timeline.submitted(operation->request(), operation->submitted_at());
    }
  });
  const std::vector<Decision> decisions = named::run_round(*group_, agreement_);
  show_arrivals();
  for (const Decision& decision : decisions) carry_out(decision);
  return !incoming.empty() || joins || !decisions.empty() || !agreement_.arrivals().empty();
}

void NamedOperations::Engine::show_arrivals() {
  if (agreement_.arrivals().empty()) return;
  options_.timeline->with([&](Timeline& timeline) {
    for (const Agreement::Arrival& arrival : agreement_.arrivals()) {
      timeline.rank_is_ready(arrival.name, group_->global_rank(arrival.rank));
    }
  });
}

void NamedOperations::Engine::carry_out(const Decision& decision) {
  switch (decision.kind) {
    case Decision::Kind::kRun:
      return run(decision);
    case Decision::Kind::kFail:
      return fail(decision);
    case Decision::Kind::kAllJoined:
      state_.update([&](State& state) {
        state.pending.all_have_joined();
        state.last_joined = decision.last;
        ++state.joins;
      });
      return;
  }
}

void NamedOperations::Engine::run(const Decision& decision) {
  std::vector<Member> members;
  members.reserve(decision.requests.size());
  state_.with([&](State& state) {
    for (const Request& request : decision.requests) {
      members.push_back({&request, state.pending.agreed(request.name)});
      state.pending.started(request.name);
    }
  });
  execute(*group_, members, *options_.timeline);
  complete(decision.requests, nullptr);
}

void NamedOperations::Engine::fail(const Decision& decision) {
  options_.timeline->with([&](Timeline& timeline) {
    for (const Request& request : decision.requests) timeline.failed(request);
  });
  complete(decision.requests,
           std::make_exception_ptr(Error(ErrorKind::kMismatch, decision.problem)));
}

void NamedOperations::Engine::complete(std::span<const Request> requests,
                                       const std::exception_ptr& error) {
  state_.update([&](State& state) {
    for (const Request& request : requests) state.pending.complete(request.name, error);
  });
}

// ---- the end

/// Ends the group with this error, unless it has already ended.
void NamedOperations::Engine::end_with(const std::exception_ptr& error) {
  const Error first = as_error(error);
  const bool was_open = state_.update([&](State& state) {
    const bool is_first = !state.ended_by && !state.is_closed;
    if (!state.ended_by) state.ended_by = first;
    return is_first;
  });
  if (was_open) group_->abort(std::string(first.message()));
}

/// After `end_with`: all pending operations fail with the error of the group. Called by the thread
/// with the turn, or if no thread has the turn. Otherwise that thread may still use the memory of
/// the operations.
void NamedOperations::Engine::fail_all() {
  const std::vector<OperationPtr> failed =
      state_.update([](State& state) { return state.pending.fail(*state.ended_by); });
  options_.timeline->with([&](Timeline& timeline) {
    for (const OperationPtr& operation : failed) timeline.failed(operation->request());
  });
}

void NamedOperations::Engine::throw_interruption() {
  const std::exception_ptr interruption =
      state_.with([](State& state) { return std::exchange(state.interruption, nullptr); });
  if (interruption) std::rethrow_exception(interruption);
}

}  // namespace peal::named
