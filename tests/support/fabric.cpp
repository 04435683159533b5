#include "tests/support/fabric.h"

#include <map>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "peal/backends/native/native.h"
#include "peal/base/error.h"
#include "peal/base/guarded.h"
#include "peal/init/connector.h"
#include "peal/store/memory_store.h"
#include "peal/transport/memory/memory.h"
#include "peal/transport/testing/faulty.h"
#include "peal/transport/testing/testing.h"

namespace peal::testing {
namespace {

using transport::Transport;

/// Per rank. All ranks are in this process, so it needs ranks * ranks times as much address space,
/// and the thread sanitizer leaves little.
constexpr Bytes kArena = 64_MiB;

/// The world's store and name, as a real meeting would make them.
rendezvous::Meeting meeting_of(Rank rank, int ranks, std::shared_ptr<store::Store> store) {
  rendezvous::Identity identity;
  identity.rank = rank;
  identity.world_size = ranks;
  rendezvous::Meeting meeting;
  meeting.identity = identity;
  meeting.job = "job of a test";
  meeting.secret = Secret("a secret");
  meeting.store = std::move(store);
  return meeting;
}

/// Makes the transports of a group when its first rank asks, and keeps those of the other ranks.
class Exchange {
 public:
  Exchange(Fabric fabric, Bytes stage) : fabric_(fabric), stage_(stage) {}

  /// `members`: the world ranks of the group. `rank` is the caller's rank in the group.
  std::unique_ptr<Transport> take(Rank rank,
                                  std::span<const Rank> members,
                                  const std::string& group) {
    return groups_.with([&](auto& groups) {
      auto& group_transports = groups[group];
      if (group_transports.empty()) {
        group_transports = fabric_ == Fabric::kOnDemand ? connect(members, group) : make(members);
      }
      return std::move(group_transports[static_cast<std::size_t>(rank)]);
    });
  }

 private:
  /// Ranks in this process that behave like ranks of several hosts.
  std::vector<std::unique_ptr<Transport>> connect(std::span<const Rank> members,
                                                  const std::string& group) const {
    const int ranks = static_cast<int>(members.size());
    transport::ConnectOptions options;
    options.group = group;
    options.world_ranks.assign(members.begin(), members.end());
    options.stage = stage_;
    options.linked_at_start = 0;
    std::vector<std::string> hosts;
    for (Rank rank = 0; rank < ranks; ++rank) {
      hosts.push_back(fmt::format("host {}", rank / ranks_per_host(fabric_, ranks)));
    }
    return transport::testing::connect_all(ranks, options, hosts);
  }

  std::vector<std::unique_ptr<Transport>> make(std::span<const Rank> members) {
    const int ranks = static_cast<int>(members.size());
    using Sharing = transport::MemoryOptions::Sharing;
    transport::MemoryOptions options;
    const bool shares = fabric_ == Fabric::kMemory || fabric_ == Fabric::kHosts;
    options.sharing = shares ? Sharing::kWindow : Sharing::kMessagesOnly;
    if (fabric_ == Fabric::kHosts) options.ranks_per_host = ranks_per_host(fabric_, ranks);
    options.stage = stage_;
    options.data_ring = 4_KiB;
    options.arena = kArena;
    if (fabric_ != Fabric::kShortWrites) {  // with faults each group has its own thread for mail
      for (const Rank member : members) options.mail_threads.push_back(mail_thread_of(member));
    }
    auto transports = transport::make_memory_transports(ranks, options);
    if (fabric_ == Fabric::kShortWrites) {
      const transport::Faults faults{.seed = static_cast<unsigned>(ranks),
                                     .most_per_call = 700_B,
                                     .idle_calls = 1,
                                     .wakeups = transport::Faults::Wakeups::kSpurious};
      for (auto& one : transports) one = transport::make_faulty(std::move(one), faults);
    }
    return transports;
  }

  /// All groups of a rank share its MailThread, as over shm.
  std::shared_ptr<transport::MailThread> mail_thread_of(Rank world_rank) {
    std::weak_ptr<transport::MailThread>& known = mail_threads_[world_rank];
    auto thread = known.lock();
    if (!thread) known = thread = std::make_shared<transport::MailThread>();
    return thread;
  }

  Fabric fabric_;
  Bytes stage_;
  Guarded<std::map<std::string, std::vector<std::unique_ptr<Transport>>>> groups_;
  std::map<Rank, std::weak_ptr<transport::MailThread>> mail_threads_;  // under the same lock
};

}  // namespace

std::string name_of(Fabric fabric) {
  switch (fabric) {
    case Fabric::kMemory:
      return "memory";
    case Fabric::kHosts:
      return "hosts";
    case Fabric::kMessages:
      return "messages";
    case Fabric::kShortWrites:
      return "short_writes";
    case Fabric::kShm:
      return "shm";
    case Fabric::kTcp:
      return "tcp";
    case Fabric::kTcpChecked:
      return "tcp_checked";
    case Fabric::kTcpEncrypted:
      return "tcp_encrypted";
    case Fabric::kOnDemand:
      return "on_demand";
  }
  return "?";
}

int ranks_per_host(Fabric fabric, int ranks) {
  switch (fabric) {
    case Fabric::kMemory:
    case Fabric::kShm:
      return ranks;
    case Fabric::kHosts:
      // The smallest number above one that divides the ranks into several hosts; otherwise all
      // ranks.
      for (int local = 2; local < ranks; ++local) {
        if (ranks % local == 0) return local;
      }
      return ranks;
    case Fabric::kOnDemand:  // always several hosts
      for (int local = 2; local < ranks; ++local) {
        if (ranks % local == 0) return local;
      }
      return 1;
    case Fabric::kMessages:
    case Fabric::kShortWrites:
    case Fabric::kTcp:
    case Fabric::kTcpChecked:
    case Fabric::kTcpEncrypted:
      return 1;
  }
  return 1;
}

namespace {

/// Whether Exchange makes the transports, without a store.
bool is_of_exchange(Fabric fabric) {
  switch (fabric) {
    case Fabric::kMemory:
    case Fabric::kHosts:
    case Fabric::kMessages:
    case Fabric::kShortWrites:
    case Fabric::kOnDemand:
      return true;
    case Fabric::kShm:
    case Fabric::kTcp:
    case Fabric::kTcpChecked:
    case Fabric::kTcpEncrypted:
      return false;
  }
  return false;
}

}  // namespace

struct Job::Impl {
  Impl(Fabric f, int n, Config c)
      : fabric(f), ranks(n), config(std::move(c)), exchange(f, config.stage) {}

  Fabric fabric;
  int ranks;
  Config config;
  Exchange exchange;
  std::shared_ptr<store::Store> store = store::make_memory_store();

  native::Connect connect(Rank rank) {
    if (is_of_exchange(fabric)) {
      return [this, rank](std::span<const Rank> members,
                          const std::string& group,
                          Deadline,
                          const std::function<void()>&,
                          const native::UseTransport& use) {
        const auto self = std::find(members.begin(), members.end(), rank) - members.begin();
        use(exchange.take(static_cast<Rank>(self), members, group));
      };
    }
    Config settings = config;
    settings.transport = fabric == Fabric::kShm ? TransportChoice::kShm : TransportChoice::kTcp;
    if (fabric == Fabric::kTcpChecked) settings.integrity = Integrity::kCrc;
    if (fabric == Fabric::kTcpEncrypted) settings.tls = Tls::kOn;
    const auto connector = std::make_shared<init::Connector>(
        meeting_of(rank, ranks, store), settings, silent_report(), kArena);
    return [connector](std::span<const Rank> members,
                       const std::string& group,
                       Deadline deadline,
                       const std::function<void()>& look,
                       const native::UseTransport& use) {
      connector->connect(members, group, deadline, look, use);
    };
  }
};

Job::Job(Fabric fabric, int ranks, Config config)
    : impl_(std::make_unique<Impl>(fabric, ranks, std::move(config))) {}
Job::~Job() = default;

int Job::ranks() const { return impl_->ranks; }

ProcessGroupPtr Job::join(Rank rank, Timeout timeout) {
  native::Options options;
  options.rank = rank;
  options.config = impl_->config;
  options.world_ranks.resize(static_cast<std::size_t>(impl_->ranks));
  std::iota(options.world_ranks.begin(), options.world_ranks.end(), 0);
  options.connect = impl_->connect(rank);
  ProcessGroup::Options group;
  group.timeout = timeout;
  return std::make_shared<ProcessGroup>(
      native::make_backend(std::move(options), Deadline::after(group.timeout)), group);
}

}  // namespace peal::testing
