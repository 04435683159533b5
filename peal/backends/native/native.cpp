#include "peal/backends/native/native.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "peal/backends/native/collective_loop.h"
#include "peal/backends/native/message_loop.h"
#include "peal/backends/native/plan_cache.h"
#include "peal/backends/native/tickets_work.h"
#include "peal/base/error.h"
#include "peal/transport/memory/memory.h"
#include "peal/transport/window.h"

namespace peal::native {
namespace {

Capabilities native_capabilities(transport::Transport* transport) {
  Capabilities capabilities;
  capabilities.name = "native";
  capabilities.operations.assign(kAllCollectives.begin(), kAllCollectives.end());
  capabilities.operations.push_back(Operation::kSend);
  capabilities.operations.push_back(Operation::kRecv);
  capabilities.dtypes.assign(kAllDTypes.begin(), kAllDTypes.end());
  capabilities.registered_memory = transport != nullptr && transport->window() != nullptr;
  return capabilities;
}

/// Whether the ranks of this host have a core each. The cores of the machine count, not those that
/// this process is bound to: launchers bind each rank to cores of its own.
Cores cores_for(const transport::Transport& transport) {
  return transport.ranks_on_host() <= ::sysconf(_SC_NPROCESSORS_ONLN) ? Cores::kOwn
                                                                      : Cores::kShared;
}

bool is_message(const Request& request) {
  return request.operation == Operation::kSend || request.operation == Operation::kRecv;
}

/// Everything that a group of two and more runs on. The loops end before what they run on.
struct Engine {
  Engine(const Options& options, std::unique_ptr<transport::Transport> t)
      : transport(std::move(t)),
        ranks(static_cast<int>(options.world_ranks.size())),
        cores(cores_for(*transport)),
        planner(options.rank, options.config.algorithm) {
    verdict.on_reached([this] {
      transport->data().interrupt();
      transport->mail().interrupt();
      if (transport->window() != nullptr) transport->window()->wake_all();
    });
    messages.emplace(options.rank, ranks, *transport, verdict, cores);
    collectives.emplace(
        CollectiveLoop::Parts{.group = options.group,
                              .self = options.rank,
                              .ranks = ranks,
                              .transport = *transport,
                              .planner = planner,
                              .verdict = verdict,
                              .stage = options.config.stage,
                              .cores = cores,
                              .has_left = [this](Rank peer) { return messages->has_left(peer); }});
  }

  std::unique_ptr<transport::Transport> transport;
  int ranks;
  Cores cores;
  PlanCache planner;
  engine::Verdict verdict;
  std::optional<MessageLoop> messages;
  std::optional<CollectiveLoop> collectives;
};

class NativeBackend final : public Backend {
 public:
  NativeBackend(Options options, std::unique_ptr<transport::Transport> transport)
      : options_(std::move(options)), capabilities_(native_capabilities(transport.get())) {
    if (transport) engine_ = std::make_unique<Engine>(options_, std::move(transport));
  }

  ~NativeBackend() override { stop(); }

  Rank rank() const override { return options_.rank; }
  int size() const override { return static_cast<int>(options_.world_ranks.size()); }
  const Capabilities& capabilities() const override { return capabilities_; }

  Rank run(const Request& request, Timeout timeout) override {
    if (is_message(request)) return running().messages->run(request, timeout);
    if (size() == 1) {
      TaskMaker::run_alone(request);
    } else {
      running().collectives->run(request, timeout);
    }
    return request.root;
  }

  WorkPtr start(std::span<const Request> requests, Timeout timeout) override {
    std::vector<engine::TicketPtr> tickets;
    if (!requests.empty() && is_message(requests.front())) {
      tickets = running().messages->start(requests, timeout);
      return std::make_shared<TicketsWork>(std::move(tickets));
    }
    for (const Request& request : requests) {
      if (size() > 1) {
        tickets.push_back(running().collectives->start(request, timeout));
      } else {
        TaskMaker::run_alone(request);
      }
    }
    return std::make_shared<TicketsWork>(std::move(tickets));
  }

  std::unique_ptr<Backend> subgroup(std::span<const Rank> members,
                                    const std::string& name,
                                    Timeout timeout) override {
    Options options;
    options.group = name;
    options.config = options_.config;
    options.connect = options_.connect;
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (members[i] == options_.rank) options.rank = static_cast<Rank>(i);
      options.world_ranks.push_back(options_.world_ranks[static_cast<std::size_t>(members[i])]);
    }
    return make_backend(std::move(options), Deadline::after(timeout));
  }

  Memory allocate(Bytes size) override {
    transport::Window* window = engine_ ? engine_->transport->window() : nullptr;
    if (window == nullptr) return Memory(new std::byte[static_cast<std::size_t>(size.value)]());
    std::byte* memory = window->allocate(size);
    std::memset(memory, 0, static_cast<std::size_t>(size.value));
    // A copy of the window keeps the arena alive for as long as the memory is in use.
    return Memory(memory, [owner = *window](std::byte* m) mutable { owner.deallocate(m); });
  }

  void abort(const Error& cause) noexcept override {
    if (engine_) engine_->verdict.reach(cause);
  }

  void shutdown(Deadline deadline) override {
    if (!engine_) return;
    const bool drained = engine_->collectives->drain(deadline);
    engine_->messages->leave(deadline);
    stop();
    if (!drained) {
      throw Error(ErrorKind::kTimeout,
                  fmt::format("the group {} was destroyed on rank {} with collectives under way",
                              options_.group,
                              options_.rank));
    }
  }

 private:
  Engine& running() {
    const std::lock_guard lock(start_);
    if (!engine_ && size() == 1 && !stopped_) {  // messages to oneself: the only use of it there
      engine_ = std::make_unique<Engine>(
          options_, std::move(transport::make_memory_transports(1, {}).front()));
    }
    if (!engine_) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("the group {} has been destroyed", options_.group));
    }
    return *engine_;
  }

  void stop() {
    stopped_ = true;
    if (!engine_) return;
    engine_->messages->stop();  // before the verdict: the peers are not to hear of it
    engine_->verdict.reach(
        Error(ErrorKind::kUsage, fmt::format("the group {} has been destroyed", options_.group)));
    engine_->collectives.reset();
    engine_.reset();
  }

  Options options_;
  Capabilities capabilities_;
  std::mutex start_;
  bool stopped_ = false;
  /// Null after shutdown; in a group of one until a message is sent or received.
  std::unique_ptr<Engine> engine_;
};

}  // namespace

std::unique_ptr<Backend> make_backend(Options options, Deadline deadline) {
  std::unique_ptr<transport::Transport> transport;
  if (options.world_ranks.size() > 1) {
    transport = options.connect(options.world_ranks, options.group, deadline);
  }
  return std::make_unique<NativeBackend>(std::move(options), std::move(transport));
}

}  // namespace peal::native
