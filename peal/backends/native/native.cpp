#include "peal/backends/native/native.h"

#include <atomic>
#include <cstring>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "peal/backends/native/fault_injector.h"
#include "peal/backends/native/group_runtime.h"
#include "peal/backends/native/handler_threads.h"
#include "peal/backends/native/table_planner.h"
#include "peal/base/departure.h"
#include "peal/base/error.h"
#include "peal/base/guarded.h"
#include "peal/base/interrupt.h"
#include "peal/transport/memory/memory.h"
#include "peal/transport/window/window.h"

namespace peal::native {
namespace {

Capabilities native_capabilities(transport::Transport* transport) {
  Capabilities capabilities;
  capabilities.name = "native";
  capabilities.operations = EnumSet<Operation>::of(kAllCollectives);
  capabilities.operations.insert(Operation::kSend);
  capabilities.operations.insert(Operation::kRecv);
  capabilities.dtypes = EnumSet<DType>::of(kAllDTypes);
  capabilities.registered_memory = transport != nullptr && transport->window() != nullptr;
  return capabilities;
}

bool is_message(const Request& request) {
  return request.operation == Operation::kSend || request.operation == Operation::kRecv;
}

/// The exception of rank `world_rank`, if that exception has ended a group.
std::optional<std::string> what_was_thrown(const Error& end, Rank world_rank) {
  const ErrorDetails& details = end.details();
  if (details.cause != ErrorCause::kThrew || details.rank != world_rank) return std::nullopt;
  return details.reason;
}

/// Zeroed and aligned to a cache line, like memory of a window.
Memory allocate_plain(Bytes size) {
  constexpr std::align_val_t kAlignment{64};
  const auto bytes = static_cast<std::size_t>(size.value);
  void* const memory = ::operator new(bytes, kAlignment, std::nothrow);
  if (memory == nullptr) {
    throw Error(ErrorKind::kResource, fmt::format("cannot allocate {} bytes of memory", bytes));
  }
  std::memset(memory, 0, bytes);
  return Memory(static_cast<std::byte*>(memory),
                [](std::byte* m) { ::operator delete(m, kAlignment); });
}

class RecordedNotes final : public FlightNotes {
 public:
  RecordedNotes(std::shared_ptr<observe::FlightRecorder> recorder, std::uint8_t group)
      : recorder_(std::move(recorder)), group_(group) {}

  Place submitted(std::string_view text) noexcept override {
    return recorder_->names().submitted(group_, text);
  }
  void started(Place place) noexcept override { recorder_->names().started(place); }
  void ended(Place place, Ending ending) noexcept override {
    using Recorded = observe::NameTable::Ending;
    recorder_->names().ended(place, ending == Ending::kWell ? Recorded::kWell : Recorded::kFailed);
  }
  void group_is_background() noexcept override { recorder_->is_background(group_); }

 private:
  const std::shared_ptr<observe::FlightRecorder> recorder_;
  const std::uint8_t group_;
};

class NativeBackend final : public Backend {
 public:
  NativeBackend(Options options, std::unique_ptr<transport::Transport> transport)
      : options_(std::move(options)),
        recorder_(options_.recorder, options_.group, options_.world_ranks),
        fault_injector_(FaultInjector::try_make(options_.faults, options_.rank)),
        capabilities_(native_capabilities(transport.get())) {
    RuntimePtr runtime;
    if (transport) {
      runtime = make_runtime(std::move(transport));
      capabilities_.asynchronous_progress = runtime->has_asynchronous_progress();
    }
    open_runtime_ = runtime.get();
    life_.with([&](Life& life) {
      life.runtime = std::move(runtime);
      life.connect = std::exchange(options_.connect, nullptr);
    });
  }

  ~NativeBackend() override {
    if (const RuntimePtr runtime = end_life()) runtime->stop(destroyed_error(options_.group));
  }

  Rank rank() const override { return options_.rank; }
  int size() const override { return static_cast<int>(options_.world_ranks.size()); }
  const Capabilities& capabilities() const override { return capabilities_; }

  Rank run(const Request& request, Timeout timeout) override {
    check_not_in_handler("start an operation");
    if (fault_injector_) fault_injector_->begin_operation();
    if (is_message(request)) return run_message(request, timeout);
    if (size() == 1) {
      run_alone(request);
    } else {
      run_collective(request, timeout);
    }
    return request.root;
  }

  WorkPtr start(std::span<const Request> requests, Timeout timeout) override {
    check_not_in_handler("start an operation");
    for (std::size_t i = 0; fault_injector_ && i < requests.size(); ++i)
      fault_injector_->begin_operation();
    if (!requests.empty() && is_message(requests.front())) {
      const RuntimePtr runtime = runtime_for_messages();
      return std::make_shared<TicketsWork>(runtime->messages().start(requests, timeout),
                                           runtime->messages().afterwards());
    }
    if (size() > 1 && requests.size() == 1) {
      return runtime()->collectives().start(requests.front(), timeout);
    }
    std::vector<mail::TicketPtr> tickets;
    for (const Request& request : requests) {
      if (size() > 1) {
        const auto started = runtime()->collectives().start(request, timeout);
        tickets.emplace_back(started, &started->ticket());
      } else {
        run_alone(request);
      }
    }
    return std::make_shared<TicketsWork>(std::move(tickets));
  }

  std::unique_ptr<Backend> subgroup(std::span<const Rank> members,
                                    const std::string& name,
                                    Timeout timeout) override {
    check_not_in_handler("make a group");
    Options options;
    options.group = name;
    options.config = options_.config;
    options.ends = options_.ends;
    options.interrupt = options_.interrupt;
    options.eager_bound = options_.eager_bound;
    options.recorder = options_.recorder;
    options.connect = life_.with([&](const Life& life) {
      life.check(options_.group);
      return life.connect;
    });
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (members[i] == options_.rank) options.rank = static_cast<Rank>(i);
      options.world_ranks.push_back(options_.world_ranks[static_cast<std::size_t>(members[i])]);
    }
    if (const RuntimePtr held = runtime()) {
      options.cpus = held->cpus();
      options.what_was_thrown = [group_error = held->shared_group_error(),
                                 above = options_.what_was_thrown](Rank world_rank) {
        auto what = group_error->is_set() ? what_was_thrown(group_error->cause(), world_rank)
                                          : std::nullopt;
        return what || !above ? what : above(world_rank);
      };
    }
    // If this group has failed, some ranks will not come.
    const auto look = [this] {
      if (options_.interrupt) options_.interrupt();
      if (const RuntimePtr held = runtime()) held->group_error().check();
    };
    return make_backend(std::move(options), Deadline::after(timeout), look);
  }

  Memory allocate(Bytes bytes) override {
    const RuntimePtr held = size() > 1 ? runtime() : nullptr;
    transport::Window* const window = held ? held->window() : nullptr;
    if (window == nullptr) return allocate_plain(bytes);
    std::byte* memory = window->allocate(bytes);
    std::memset(memory, 0, static_cast<std::size_t>(bytes.value));
    // A copy of the window keeps the arena alive for as long as the memory is in use.
    return Memory(memory, [owner = *window](std::byte* m) mutable { owner.deallocate(m); });
  }

  Registration register_memory(std::span<std::byte> memory) override {
    const RuntimePtr held = size() > 1 ? runtime() : nullptr;
    transport::Window* const window = held ? held->window() : nullptr;
    if (window == nullptr) return {};
    window->register_memory(memory);
    // As in `allocate`.
    return Registration(memory.data(), [owner = *window](void* m) mutable {
      owner.deregister_memory(static_cast<const std::byte*>(m));
    });
  }

  std::shared_ptr<FlightNotes> flight_notes() override {
    if (!recorder_.recorder()) return nullptr;
    return std::make_shared<RecordedNotes>(recorder_.recorder(), recorder_.number());
  }

  void ask_interrupt() override {
    if (const RuntimePtr held = runtime()) set_if_interrupted(held->group_error(), interrupt_);
  }

  void abort(const Error& cause, Departure how) noexcept override {
    // before its consequences are recorded
    if (how == Departure::kByException) recorder_.left(how);
    const RuntimePtr runtime = life_.with([&](Life& life) {
      if (!life.runtime && !life.aborted) life.aborted = cause;
      return life.runtime;
    });
    if (runtime) runtime->group_error().set(cause);
  }

  void check_may_end() const override { check_not_in_handler("end the group"); }

  void shutdown(Departure departure, Deadline deadline, Interrupts interrupts) override {
    if (fault_injector_) fault_injector_->end(options_.report);
    const RuntimePtr runtime = end_life();
    if (!runtime) {
      if (size() == 1) {
        recorder_.left(departure);
        release_runtime();
      }
      return;
    }
    const Interrupt interrupt = interrupts == Interrupts::kAsked ? interrupt_ : nullptr;
    std::optional<Error> failure;
    try {
      failure = leave(*runtime, departure, deadline, interrupt);
    } catch (const std::exception&) {  // no memory
      failure = current_error("the end of the group");
    }
    runtime->stop(destroyed_error(options_.group));
    release_runtime();
    if (failure) throw Error(*failure);
  }

 private:
  /// Waits for operations in flight, and tells the peers. Returns why operations were cut off or
  /// the wait was interrupted.
  std::optional<Error> leave(GroupRuntime& runtime,
                             Departure departure,
                             Deadline deadline,
                             const Interrupt& interrupt) {
    std::optional<Error> cut;
    Error to_peers = left_unfinished(departure);
    try {
      const bool drained = wait_or_interrupt(
          deadline, interrupt, [&](Deadline until) { return runtime.collectives().drain(until); });
      if (!drained) cut = unfinished();
    } catch (const Interrupted& by) {
      cut = to_peers = error_of(by);
      deadline = Deadline::after(Timeout(0));
    }
    recorder_.left(departure);
    if (cut) runtime.messages().give_up(*cut, to_peers);
    const auto interrupted = runtime.messages().leave(departure, deadline, interrupt);
    return cut ? cut : interrupted;
  }

  using RuntimePtr = std::shared_ptr<GroupRuntime>;  // shared with the calls in flight

  /// A call in flight: the group's end waits for it.
  struct Visit {
    explicit Visit(NativeBackend& b) : backend(b) { backend.visits_.fetch_add(1); }
    ~Visit() { backend.visits_.fetch_sub(1); }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;

    NativeBackend& backend;
  };

  struct Life {
    RuntimePtr runtime;            // in a group of one only after a send or a receive
    Connect connect;               // for sub-groups; holds the store in which the ranks met
    std::optional<Error> aborted;  // the cause of an abort before there was a runtime to keep it
    bool over = false;             // calls are rejected

    void check(const std::string& group) const {
      if (over) throw destroyed_error(group);
      if (aborted) throw Error(*aborted);
    }
  };

  RuntimePtr make_runtime(std::unique_ptr<transport::Transport> transport) {
    Options options = options_;
    options.interrupt = interrupt_;
    return std::make_shared<GroupRuntime>(
        options, recorder_, std::move(transport), quick_lock_, mutex_);
  }

  /// A signal handler may run here, in a call that waits. It may abort the group.
  void check_not_in_handler(const char* action) const {
    if (!handlers_.has_this_thread()) return;
    throw Error(ErrorKind::kUsage,
                fmt::format("the interrupt (in Python, a signal handler) of rank {} cannot {}: it "
                            "runs inside an operation of the group {}. Set a flag there, and act "
                            "on it when the operation has ended, or abort the group",
                            options_.rank,
                            action,
                            options_.group));
  }

  RuntimePtr runtime() {
    return life_.with([&](const Life& life) {
      life.check(options_.group);
      return life.runtime;
    });
  }

  Rank world_rank() const { return options_.world_ranks[static_cast<std::size_t>(options_.rank)]; }

  /// Why the collectives in flight end here.
  Error unfinished() const {
    return Error(ErrorKind::kTimeout,
                 fmt::format("the group {} was destroyed on rank {} while collectives were running",
                             options_.group,
                             options_.rank),
                 {.rank = world_rank(), .cause = ErrorCause::kLeft});
  }

  /// The same for the peers, which have lost this rank.
  Error left_unfinished(Departure departure) const {
    return Error(
        ErrorKind::kPeerLost,
        fmt::format("rank {} {} while collectives of the group {} were running",
                    options_.rank,
                    describe(departure),
                    options_.group),
        {.rank = world_rank(),
         .cause = departure == Departure::kByException ? ErrorCause::kThrew : ErrorCause::kLeft});
  }

  void run_collective(const Request& request, Timeout timeout) {
    GroupRuntime* const runtime = open_runtime_.load();
    if (runtime == nullptr || !quick_lock_.try_enter()) return run_beside_others(request, timeout);
    // The quick lock was open, so the runtime has not ended yet. Its end waits until this thread
    // has left.
    struct Inside {
      NativeBackend& backend;
      CollectiveLoop& loop;

      ~Inside() {
        if (backend.quick_lock_.try_leave()) return;
        const Visit visit(backend);  // the end waits for the turn's end, and then for visits
        loop.end_turn();
      }
    };
    const Inside inside{*this, runtime->collectives()};
    inside.loop.run_inside(request, timeout);
  }

  void run_beside_others(const Request& request, Timeout timeout) {
    const Visit visit(*this);
    runtime()->collectives().run(request, timeout);
  }

  Rank run_message(const Request& request, Timeout timeout) {
    if (GroupRuntime* const runtime = open_runtime_.load(); runtime != nullptr) {
      mutex_.lock();
      // The thread that ends the runtime resets open_runtime_ and then locks this mutex.
      if (open_runtime_.load() == runtime) return runtime->messages().run_inside(request, timeout);
      mutex_.unlock();
    }
    return runtime_for_messages()->messages().run(request, timeout);
  }

  void run_alone(const Request& request) {
    if (const RuntimePtr held = runtime()) held->group_error().check();
    TaskMaker::run_alone(request);
  }

  /// In a group of one, only messages to itself need a runtime.
  RuntimePtr runtime_for_messages() {
    return life_.with([&](Life& life) {
      life.check(options_.group);
      if (!life.runtime) {
        life.runtime = make_runtime(std::move(transport::make_memory_transports(1, {}).front()));
      }
      return life.runtime;
    });
  }

  /// Rejects calls from now on. Returns the runtime to the first caller only; `abort` still reaches
  /// the runtime.
  RuntimePtr end_life() {
    return life_.with([this](Life& life) {
      open_runtime_ = nullptr;  // a call that reads null finds the reason under this lock
      return std::exchange(life.over, true) ? RuntimePtr() : life.runtime;
    });
  }

  /// Releases everything that the group holds, even if the user still holds the group: its ranks
  /// may meet again. Releases outside of the lock, because the store waits a moment for its other
  /// users.
  void release_runtime() {
    while (visits_ > 0) std::this_thread::yield();  // the group error has ended these calls
    life_.with([](Life& life) {
      return std::pair(std::move(life.runtime), std::exchange(life.connect, nullptr));
    });
  }

  Options options_;
  HandlerThreads handlers_;
  const Interrupt interrupt_ = handlers_.noting(options_.interrupt);
  const observe::GroupRecorder recorder_;
  const std::unique_ptr<FaultInjector> fault_injector_;  // null without faults for this rank
  Capabilities capabilities_;
  QuickLock quick_lock_;  // of the collectives
  FairMutex mutex_;       // of the messages
  Guarded<Life> life_;
  std::atomic<GroupRuntime*> open_runtime_ = nullptr;  // for operations, while the group lives
  std::atomic<int> visits_ = 0;
};

}  // namespace

std::unique_ptr<Backend> make_backend(Options options,
                                      Deadline deadline,
                                      const std::function<void()>& look) {
  static_cast<void>(
      TablePlanner(options.rank, options.config));  // throws if an algorithm or the table is wrong
  if (options.world_ranks.size() == 1) {
    return std::make_unique<NativeBackend>(std::move(options), nullptr);
  }
  std::unique_ptr<Backend> backend;
  const auto use = [&](std::unique_ptr<transport::Transport> transport) {
    backend = std::make_unique<NativeBackend>(options, std::move(transport));
  };
  options.connect(options.world_ranks, options.group, deadline, look, use);
  return backend;
}

}  // namespace peal::native
