#include "peal/backends/native/native.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "peal/backends/native/engine.h"
#include "peal/backends/native/fate.h"
#include "peal/backends/native/handler_threads.h"
#include "peal/backends/native/table_planner.h"
#include "peal/backends/native/tickets_work.h"
#include "peal/base/departure.h"
#include "peal/base/error.h"
#include "peal/base/guarded.h"
#include "peal/base/interrupt.h"
#include "peal/transport/memory/memory.h"
#include "peal/transport/window.h"

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

Error destroyed(const std::string& group) {
  return Error(ErrorKind::kUsage, fmt::format("the group {} has been destroyed", group));
}

/// What the rank threw, where that is what has ended a group.
std::optional<std::string> what_was_thrown(const Error& end, Rank world_rank) {
  const std::string told = threw(world_rank);
  if (!end.message().starts_with(told)) return std::nullopt;
  return std::string(end.message().substr(told.size()));
}

/// Zeroed, and on a cache line of its own, as that of a window.
Memory allocate_plain(Bytes size) {
  constexpr std::align_val_t kAlignment{64};
  const auto bytes = static_cast<std::size_t>(size.value);
  void* const memory = ::operator new(bytes, kAlignment, std::nothrow);
  if (memory == nullptr) {
    throw Error(ErrorKind::kResource, fmt::format("there is no memory for {} bytes", bytes));
  }
  std::memset(memory, 0, bytes);
  return Memory(static_cast<std::byte*>(memory),
                [](std::byte* m) { ::operator delete(m, kAlignment); });
}

class NativeBackend final : public Backend {
 public:
  NativeBackend(Options options, std::unique_ptr<transport::Transport> transport)
      : options_(std::move(options)),
        recorder_(options_.recorder, options_.group, options_.world_ranks),
        fate_(Fate::try_make(options_.faults, options_.rank)),
        capabilities_(native_capabilities(transport.get())) {
    EnginePtr engine;
    if (transport) engine = make_engine(std::move(transport));
    open_engine_ = engine.get();
    life_.with([&](Life& life) {
      life.engine = std::move(engine);
      life.connect = std::exchange(options_.connect, nullptr);
    });
  }

  ~NativeBackend() override {
    if (const EnginePtr engine = end_life()) engine->stop(destroyed(options_.group));
  }

  Rank rank() const override { return options_.rank; }
  int size() const override { return static_cast<int>(options_.world_ranks.size()); }
  const Capabilities& capabilities() const override { return capabilities_; }

  Rank run(const Request& request, Timeout timeout) override {
    check_not_in_handler("start an operation");
    if (fate_) fate_->begin_operation();
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
    for (std::size_t i = 0; fate_ && i < requests.size(); ++i) fate_->begin_operation();
    std::vector<engine::TicketPtr> tickets;
    if (!requests.empty() && is_message(requests.front())) {
      const EnginePtr engine = engine_for_messages();
      tickets = engine->messages().start(requests, timeout);
      return std::make_shared<TicketsWork>(std::move(tickets), engine->messages().afterwards());
    }
    for (const Request& request : requests) {
      if (size() > 1) {
        tickets.push_back(engine()->collectives().start(request, timeout));
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
    if (const EnginePtr held = engine()) {
      options.cpus = held->cpus();
      options.what_was_thrown = [verdict = held->shared_verdict(),
                                 above = options_.what_was_thrown](Rank world_rank) {
        auto what =
            verdict->reached() ? what_was_thrown(verdict->cause(), world_rank) : std::nullopt;
        return what || !above ? what : above(world_rank);
      };
    }
    // Where this group has failed, not all will come.
    const auto look = [this] {
      if (options_.interrupt) options_.interrupt();
      if (const EnginePtr held = engine()) held->verdict().check();
    };
    return make_backend(std::move(options), Deadline::after(timeout), look);
  }

  Memory allocate(Bytes bytes) override {
    const EnginePtr held = size() > 1 ? engine() : nullptr;
    transport::Window* const window = held ? held->window() : nullptr;
    if (window == nullptr) return allocate_plain(bytes);
    std::byte* memory = window->allocate(bytes);
    std::memset(memory, 0, static_cast<std::size_t>(bytes.value));
    // A copy of the window keeps the arena alive for as long as the memory is in use.
    return Memory(memory, [owner = *window](std::byte* m) mutable { owner.deallocate(m); });
  }

  Registration register_memory(std::span<std::byte> memory) override {
    const EnginePtr held = size() > 1 ? engine() : nullptr;
    transport::Window* const window = held ? held->window() : nullptr;
    if (window == nullptr) return {};
    window->adopt(memory);
    // As in `allocate`.
    return Registration(memory.data(), [owner = *window](void* m) mutable {
      owner.release(static_cast<const std::byte*>(m));
    });
  }

  void ask_interrupt() override {
    if (const EnginePtr held = engine()) reach_if_interrupted(held->verdict(), interrupt_);
  }

  void abort(const Error& cause, Departure how) noexcept override {
    if (how == Departure::kByException) recorder_.left(how);  // before what comes of it
    const EnginePtr engine = life_.with([&](Life& life) {
      if (!life.engine && !life.aborted) life.aborted = cause;
      return life.engine;
    });
    if (engine) engine->verdict().reach(cause);
  }

  void check_may_end() const override { check_not_in_handler("end the group"); }

  void shutdown(Departure departure, Deadline deadline, Interrupts interrupts) override {
    if (fate_) fate_->end(options_.report);
    const EnginePtr engine = end_life();
    if (!engine) {
      if (size() == 1) {
        recorder_.left(departure);
        let_go();
      }
      return;
    }
    const Interrupt interrupt = interrupts == Interrupts::kAsked ? interrupt_ : nullptr;
    std::optional<Error> cut;  // why what is under way ends here, if it does
    Error to_peers = left_unfinished(departure);
    try {
      const bool drained = wait_or_interrupt(
          deadline, interrupt, [&](Deadline until) { return engine->collectives().drain(until); });
      if (!drained) cut = unfinished();
    } catch (const Interrupted& by) {
      cut = to_peers = error_of(by);
      deadline = Deadline::after(Timeout(0));
    }
    recorder_.left(departure);
    if (cut) engine->messages().give_up(*cut, to_peers);
    const auto interrupted = engine->messages().leave(departure, deadline, interrupt);
    engine->stop(destroyed(options_.group));
    let_go();
    if (cut) throw Error(*cut);
    if (interrupted) throw Error(*interrupted);
  }

 private:
  using EnginePtr = std::shared_ptr<Engine>;  // shared with the calls that are under way

  /// A call that is under way: the group's end waits for it.
  struct Visit {
    explicit Visit(NativeBackend& b) : backend(b) { backend.visits_.fetch_add(1); }
    ~Visit() { backend.visits_.fetch_sub(1); }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;

    NativeBackend& backend;
  };

  struct Life {
    EnginePtr engine;  // in a group of one only when a message has been sent or received
    Connect connect;   // for sub-groups; holds the store in which the ranks met
    std::optional<Error> aborted;  // where there was no engine that could keep the cause
    bool over = false;             // calls are refused

    void check(const std::string& group) const {
      if (over) throw destroyed(group);
      if (aborted) throw Error(*aborted);
    }
  };

  EnginePtr make_engine(std::unique_ptr<transport::Transport> transport) {
    Options options = options_;
    options.interrupt = interrupt_;
    return std::make_shared<Engine>(options, recorder_, std::move(transport), gate_, door_);
  }

  /// The handler of a signal may run here, in a call that waits. It may abort the group.
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

  EnginePtr engine() {
    return life_.with([&](const Life& life) {
      life.check(options_.group);
      return life.engine;
    });
  }

  /// Why the collectives under way end here.
  Error unfinished() const {
    return Error(ErrorKind::kTimeout,
                 fmt::format("the group {} was destroyed on rank {} with collectives under way",
                             options_.group,
                             options_.rank));
  }

  /// And on the peers, which have lost this rank.
  Error left_unfinished(Departure departure) const {
    return Error(ErrorKind::kPeerLost,
                 fmt::format("rank {} {}, with collectives of the group {} under way",
                             options_.rank,
                             describe(departure),
                             options_.group));
  }

  void run_collective(const Request& request, Timeout timeout) {
    Engine* const engine = open_engine_.load();
    if (engine == nullptr || !gate_.try_enter()) return run_beside_others(request, timeout);
    // The gate was open, so the engine's end is yet to come, and waits until this one has left.
    struct Inside {
      NativeBackend& backend;
      CollectiveLoop& loop;

      ~Inside() {
        if (backend.gate_.try_leave()) return;
        const Visit visit(backend);  // the end waits for the turn's end, and then for visits
        loop.end_turn();
      }
    };
    const Inside inside{*this, engine->collectives()};
    inside.loop.run_inside(request, timeout);
  }

  void run_beside_others(const Request& request, Timeout timeout) {
    const Visit visit(*this);
    engine()->collectives().run(request, timeout);
  }

  Rank run_message(const Request& request, Timeout timeout) {
    if (Engine* const engine = open_engine_.load(); engine != nullptr) {
      door_.lock();
      // Whoever ends the engine passes this door after it was taken from here.
      if (open_engine_.load() == engine) return engine->messages().run_inside(request, timeout);
      door_.unlock();
    }
    return engine_for_messages()->messages().run(request, timeout);
  }

  void run_alone(const Request& request) {
    if (const EnginePtr held = engine()) held->verdict().check();
    TaskMaker::run_alone(request);
  }

  /// In a group of one, messages to oneself are the only use of an engine.
  EnginePtr engine_for_messages() {
    return life_.with([&](Life& life) {
      life.check(options_.group);
      if (!life.engine) {
        life.engine = make_engine(std::move(transport::make_memory_transports(1, {}).front()));
      }
      return life.engine;
    });
  }

  /// From now on calls are refused. Returns the engine to whoever is first; `abort` still reaches
  /// it.
  EnginePtr end_life() {
    return life_.with([this](Life& life) {
      open_engine_ = nullptr;  // whoever finds it so finds out why under the same lock
      return std::exchange(life.over, true) ? EnginePtr() : life.engine;
    });
  }

  /// A group that is over holds nothing, whoever still holds the group: its ranks may meet again.
  /// Outside of the lock, since the store waits a moment for those who still use it.
  void let_go() {
    while (visits_ > 0) std::this_thread::yield();  // the verdict has reached them
    life_.with([](Life& life) {
      return std::pair(std::move(life.engine), std::exchange(life.connect, nullptr));
    });
  }

  Options options_;
  HandlerThreads handlers_;
  const Interrupt interrupt_ = handlers_.noting(options_.interrupt);
  const observe::GroupRecorder recorder_;
  const std::unique_ptr<Fate> fate_;  // null where nothing is to befall this rank
  Capabilities capabilities_;
  Gate gate_;  // to the collectives
  Door door_;  // to the messages
  Guarded<Life> life_;
  std::atomic<Engine*> open_engine_ = nullptr;  // for collectives, while the group lives
  std::atomic<int> visits_ = 0;
};

}  // namespace

std::unique_ptr<Backend> make_backend(Options options,
                                      Deadline deadline,
                                      const std::function<void()>& look) {
  static_cast<void>(
      TablePlanner(options.rank, options.config));  // is there an error in what it was told?
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
