#include "peal/named/named_operations.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <numeric>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/guarded.h"
#include "peal/named/agreement.h"
#include "peal/named/execution.h"
#include "peal/named/rounds.h"
#include "peal/named/stall_watch.h"
#include "peal/system/thread.h"

namespace peal::named {
namespace {

/// How long asynchronous operations wait for a thread that waits for them, if the backend makes no
/// asynchronous progress: a background thread would only slow down the program.
constexpr Duration kPatience = std::chrono::milliseconds(10);

/// After a round in which nothing was decided: a rank enters the next round when it has submitted
/// something, or after an eighth of the time for which nothing was decided, within these limits.
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

void require_meaning(const Request& request) {
  if (request.kind != Kind::kAllReduce && request.kind != Kind::kReduceScatter) return;
  if (request.kind == Kind::kReduceScatter && request.reduction == Reduction::kAdasum) {
    throw Error(ErrorKind::kUnsupported, "reducescatter cannot use Adasum: use allreduce");
  }
  if (has_meaning(request.reduction, request.dtype)) return;
  throw Error(ErrorKind::kUnsupported,
              fmt::format("{}: {} has no meaning for {}",
                          request.name,
                          name_of(request.reduction),
                          name_of(request.dtype)));
}

/// Ranks with different options would make different decisions.
/// Order: collective. Errors: mismatch, on all ranks.
void require_same(ProcessGroup& group, const Options& options) {
  struct Value {
    const char* name;
    std::int64_t value;
  };
  const std::array values = {
      Value{"fusion_threshold (HOROVOD_FUSION_THRESHOLD)", options.fusion_threshold.value},
      Value{"cache_capacity (HOROVOD_CACHE_CAPACITY)", options.cache_capacity},
      Value{"group_fusion (HOROVOD_DISABLE_GROUP_FUSION)",
            static_cast<std::int64_t>(options.group_fusion)},
      Value{"while_joined", static_cast<std::int64_t>(options.while_joined)},
      Value{"the stall check (HOROVOD_STALL_CHECK_DISABLE)", options.stall_warning.count() > 0},
  };
  std::vector<std::int64_t> mine;
  for (const Value& value : values) mine.push_back(value.value);
  std::vector<std::int64_t> all(mine.size() * static_cast<std::size_t>(group.size()));
  group.all_gather(mine, all);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::size_t value = i % values.size();
    if (all[i] == all[value]) continue;
    throw Error(ErrorKind::kMismatch,
                fmt::format("ranks have different settings: {} is {} on rank {}, but {} on rank "
                            "{}; use the same on all ranks",
                            values[value].name,
                            all[value],
                            group.global_rank(0),
                            all[i],
                            group.global_rank(static_cast<Rank>(i / values.size()))));
  }
}

Error duplicate(const Request& request) {
  return Error(ErrorKind::kUsage,
               fmt::format("Requested to allreduce, allgather, or broadcast a tensor with the same "
                           "name as another tensor that is currently being processed. The name is "
                           "{}: wait for the first operation, or give another name",
                           request.name));
}

}  // namespace

class NamedOperations::Engine final {
 public:
  Engine(ProcessGroupPtr group, Options options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  ProcessGroup& group() const { return *group_; }
  void submit(std::span<const OperationPtr> operations, Waits waits);
  void wait(const Operation& operation);
  bool poll(const Operation& operation);
  Rank join();
  std::exception_ptr ended_by() {
    return state_.with([](const State& state) { return state.ended_by; });
  }

 private:
  struct State {
    std::vector<OperationPtr> incoming;  // not yet in the agreement
    std::unordered_map<std::string, OperationPtr> in_flight;
    bool is_driven = false;  // a thread runs rounds
    bool is_closed = false;
    std::exception_ptr ended_by;
    bool joins = false;  // not yet in the agreement
    std::optional<Rank> last_joined;
  };
  struct Background {
    bool has_work = false;
    bool is_closed = false;
    std::thread thread;
  };

  template <class Done>
  void drive_until(Done&& done);
  template <class Done>
  void wait_until(Done&& done);
  void end_turn();
  bool run_round();
  void carry_out(const Decision& decision);
  void run(const Decision& decision);
  void complete(std::span<const Request> requests, const std::exception_ptr& error);
  void fail(const std::exception_ptr& error);
  void complete_all();
  void pause(TimePoint idle_since);
  void wake_background();
  void work();
  void work_once();
  bool has_work();
  Stalled stalled();
  Standing standing(const std::vector<std::string>& names);

  ProcessGroupPtr group_;
  Options options_;
  bool is_eager_;
  Guarded<State> state_;
  Agreement agreement_;  // used by the thread with the turn
  Guarded<Background> background_;
  std::atomic<bool> background_has_work_ = false;
  std::optional<StallWatch> stall_watch_;
};

NamedOperations::Engine::Engine(ProcessGroupPtr group, Options options)
    : group_(std::move(group)),
      options_(std::move(options)),
      is_eager_(group_->capabilities().asynchronous_progress),
      agreement_(global_ranks_of(*group_), agreement_options(options_)) {
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
        .stalled = [this] { return stalled(); },
        .standing = [this](const std::vector<std::string>& names) { return standing(names); },
    });
  }
}

NamedOperations::Engine::~Engine() {
  stall_watch_.reset();
  // Without pending operations, a thread that still has the turn enters no further round.
  const bool is_busy = state_.update([](State& state) {
    state.is_closed = true;
    return !state.in_flight.empty();
  });
  if (is_busy) group_->abort("Horovod has been shut down while operations were pending");
  std::thread thread = background_.update([](Background& background) {
    background.is_closed = true;
    return std::move(background.thread);
  });
  if (thread.joinable()) thread.join();
  fail(std::make_exception_ptr(Error(ErrorKind::kAborted, "Horovod has been shut down")));
  complete_all();
}

void NamedOperations::Engine::submit(std::span<const OperationPtr> operations, Waits waits) {
  for (const OperationPtr& operation : operations) require_meaning(operation->request());
  state_.update([&](State& state) {
    if (state.ended_by) std::rethrow_exception(state.ended_by);
    for (std::size_t i = 0; i < operations.size(); ++i) {
      const std::string& name = operations[i]->request().name;
      if (state.in_flight.try_emplace(name, operations[i]).second) continue;
      const Error error = duplicate(operations[i]->request());
      for (std::size_t k = 0; k < i; ++k) state.in_flight.erase(operations[k]->request().name);
      throw error;
    }
    state.incoming.insert(state.incoming.end(), operations.begin(), operations.end());
  });
  if (stall_watch_) stall_watch_->start();
  if (waits == Waits::kLater) wake_background();
}

void NamedOperations::Engine::wait(const Operation& operation) {
  wait_until([&](const State&) { return operation.is_completed(); });
  if (operation.error()) std::rethrow_exception(operation.error());
}

bool NamedOperations::Engine::poll(const Operation& operation) {
  if (operation.is_completed()) return true;
  wake_background();
  return false;
}

Rank NamedOperations::Engine::join() {
  state_.update([](State& state) {
    if (state.ended_by) std::rethrow_exception(state.ended_by);
    state.joins = true;
    state.last_joined.reset();
  });
  wait_until([](const State& state) { return state.last_joined || state.ended_by; });
  return state_.with([](const State& state) {
    if (!state.last_joined) std::rethrow_exception(state.ended_by);
    return *state.last_joined;
  });
}

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
      fail(std::make_exception_ptr(error_of(interrupted)));
      const auto is_free = [](const State& state) { return !state.is_driven; };
      state_.wait(Deadline(TimePoint::max()), is_free, [](const State&) {});
      complete_all();
      std::rethrow_exception(interrupted.cause);
    }
    if (!drives) return;
    drive_until([&] { return state_.with(done); });
  }
}

/// For the thread with the turn; ends the turn.
template <class Done>
void NamedOperations::Engine::drive_until(Done&& done) {
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
    fail(std::make_exception_ptr(error_of(interrupted)));
    complete_all();
    end_turn();
    std::rethrow_exception(interrupted.cause);
  } catch (...) {
    fail(std::current_exception());
    complete_all();
    end_turn();
    throw;
  }
  end_turn();
}

void NamedOperations::Engine::end_turn() {
  const bool is_left = state_.update([](State& state) {
    state.is_driven = false;
    return !state.in_flight.empty();
  });
  if (is_left) wake_background();
}

/// Returns whether the round has changed something.
bool NamedOperations::Engine::run_round() {
  bool joins = false;
  const std::vector<OperationPtr> incoming = state_.with([&](State& state) {
    if (state.ended_by) std::rethrow_exception(state.ended_by);
    joins = std::exchange(state.joins, false);
    return std::exchange(state.incoming, {});
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
  for (const Decision& decision : decisions) carry_out(decision);
  return !incoming.empty() || joins || !decisions.empty() || !agreement_.arrivals().empty();
}

void NamedOperations::Engine::carry_out(const Decision& decision) {
  switch (decision.kind) {
    case Decision::Kind::kRun:
      return run(decision);
    case Decision::Kind::kFail:
      return complete(decision.requests,
                      std::make_exception_ptr(Error(ErrorKind::kMismatch, decision.problem)));
    case Decision::Kind::kAllJoined:
      state_.update([&](State& state) { state.last_joined = decision.last; });
      return;
  }
}

void NamedOperations::Engine::run(const Decision& decision) {
  std::vector<OperationPtr> operations;
  operations.reserve(decision.requests.size());
  state_.with([&](const State& state) {
    for (const Request& request : decision.requests) {
      const auto mine = state.in_flight.find(request.name);
      operations.push_back(mine == state.in_flight.end() ? nullptr : mine->second);
    }
  });
  std::vector<Member> members;
  members.reserve(operations.size());
  for (std::size_t i = 0; i < operations.size(); ++i) {
    members.push_back({&decision.requests[i], operations[i].get()});
  }
  execute(*group_, members, *options_.timeline);
  complete(decision.requests, nullptr);
}

void NamedOperations::Engine::complete(std::span<const Request> requests,
                                       const std::exception_ptr& error) {
  state_.update([&](State& state) {
    for (const Request& request : requests) {
      const auto mine = state.in_flight.find(request.name);
      if (mine == state.in_flight.end()) continue;
      mine->second->complete(error);
      state.in_flight.erase(mine);
    }
  });
}

/// The group has ended, or ends now, with this error, unless it has ended before.
void NamedOperations::Engine::fail(const std::exception_ptr& error) {
  std::optional<Error> first;
  try {
    std::rethrow_exception(error);
  } catch (const Error& caught) {
    first = caught;
  } catch (const std::exception& caught) {
    first.emplace(ErrorKind::kAborted,
                  fmt::format("an operation by name failed: {}", caught.what()),
                  ErrorDetails{.cause = ErrorCause::kThrew, .reason = caught.what()});
  } catch (...) {
    first.emplace(ErrorKind::kAborted, "an operation by name was interrupted");
  }
  const bool was_open = state_.update([&](State& state) {
    const bool is_first = !state.ended_by && !state.is_closed;
    if (!state.ended_by) state.ended_by = std::make_exception_ptr(*first);
    return is_first;
  });
  if (was_open) group_->abort(std::string(first->message()));
}

/// After `fail`: all pending operations fail with the error of the group. For the thread with the
/// turn, or when there is no such thread: until then a thread may use the memory of the operations.
void NamedOperations::Engine::complete_all() {
  state_.update([](State& state) {
    for (const auto& [name, operation] : state.in_flight) operation->complete(state.ended_by);
    state.in_flight.clear();
    state.incoming.clear();
  });
}

void NamedOperations::Engine::pause(TimePoint idle_since) {
  const TimePoint now = Clock::now();
  const Duration pause = std::clamp((now - idle_since) / 8, kShortestPause, kLongestPause);
  const auto has_news = [](const State& state) {
    return !state.incoming.empty() || state.joins || state.ended_by || state.is_closed;
  };
  state_.wait(Deadline(now + pause), has_news, [](const State&) {});
  let_interrupt(options_.interrupt);
}

void NamedOperations::Engine::wake_background() {
  if (background_has_work_.exchange(true)) return;
  background_.update([this](Background& background) {
    if (background.is_closed) return;
    background.has_work = true;
    if (!background.thread.joinable()) background.thread = start_thread([this] { work(); });
  });
}

/// The background thread.
void NamedOperations::Engine::work() {
  while (true) {
    bool is_closed = false;
    background_.wait(
        Deadline(TimePoint::max()),
        [](const Background& background) { return background.is_closed || background.has_work; },
        [&](Background& background) {
          is_closed = background.is_closed;
          background.has_work = false;
        });
    if (is_closed) return;
    work_once();
    background_has_work_.store(false);
    if (has_work()) wake_background();
  }
}

bool NamedOperations::Engine::has_work() {
  return state_.with([](const State& state) {
    return !state.in_flight.empty() && !state.ended_by && !state.is_closed;
  });
}

/// Runs rounds until nothing is pending, or until the ranks have to wait for the program.
void NamedOperations::Engine::work_once() {
  if (!is_eager_) {
    const auto is_closed = [](const Background& background) { return background.is_closed; };
    if (background_.wait(Deadline(Clock::now() + kPatience), is_closed, [](auto&) {})) return;
  }
  bool drives = false;
  const auto has_nothing_to_do = [](const State& state) {
    return state.in_flight.empty() || state.is_closed || state.ended_by;
  };
  state_.wait(
      Deadline(TimePoint::max()),
      [&](const State& state) { return !state.is_driven || has_nothing_to_do(state); },
      [&](State& state) {
        drives = !has_nothing_to_do(state);
        if (drives) state.is_driven = true;
      });
  if (!drives) return;
  try {
    bool has_changed = true;
    drive_until([&] {
      const bool is_done = !has_work() || (!is_eager_ && !has_changed);
      has_changed = state_.with([](const State& state) { return !state.incoming.empty(); });
      return is_done;
    });
  } catch (...) {
    // `fail` has stored the error, and all waiting threads get it.
  }
}

Stalled NamedOperations::Engine::stalled() {
  std::vector<OperationPtr> late;
  const TimePoint now = Clock::now();
  state_.with([&](const State& state) {
    for (const auto& [name, operation] : state.in_flight) {
      if (now - operation->submitted_at() >= options_.stall_warning) late.push_back(operation);
    }
  });
  if (late.empty()) return {};
  std::ranges::sort(late, {}, [](const OperationPtr& operation) {
    return std::pair(operation->submitted_at(), operation->request().name);
  });
  Stalled stalled{.names = {}, .waited = now - late.front()->submitted_at()};
  for (const OperationPtr& operation : late) stalled.names.push_back(operation->request().name);
  return stalled;
}

Standing NamedOperations::Engine::standing(const std::vector<std::string>& names) {
  Standing standing;
  state_.with([&](const State& state) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (state.in_flight.contains(names[i])) standing.has |= std::uint64_t{1} << i;
    }
  });
  if (options_.whereabouts) standing.place = options_.whereabouts();
  return standing;
}

NamedOperations::NamedOperations(ProcessGroupPtr group, Options options)
    : engine_(std::make_unique<Engine>(std::move(group), std::move(options))) {}

NamedOperations::~NamedOperations() = default;

ProcessGroup& NamedOperations::group() const { return engine_->group(); }

OperationPtr NamedOperations::submit(Submission submission, Waits waits) {
  auto operation =
      std::make_shared<Operation>(std::move(submission.request), std::move(submission.memory));
  engine_->submit(std::span(&operation, 1), waits);
  return operation;
}

std::vector<OperationPtr> NamedOperations::submit(std::vector<Submission> submissions,
                                                  Waits waits) {
  std::vector<OperationPtr> operations;
  operations.reserve(submissions.size());
  for (Submission& submission : submissions) {
    operations.push_back(
        std::make_shared<Operation>(std::move(submission.request), std::move(submission.memory)));
  }
  engine_->submit(operations, waits);
  return operations;
}

void NamedOperations::wait(const Operation& operation) { engine_->wait(operation); }

bool NamedOperations::poll(const Operation& operation) { return engine_->poll(operation); }

Rank NamedOperations::join() { return engine_->join(); }

std::exception_ptr NamedOperations::ended_by() const { return engine_->ended_by(); }

}  // namespace peal::named
