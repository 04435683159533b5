#include "tests/support/fabric.h"

#include <map>
#include <mutex>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "peal/backends/native/native.h"
#include "peal/base/error.h"
#include "peal/base/guarded.h"
#include "peal/transport/memory/memory.h"

namespace peal::testing {
namespace {

using transport::Transport;

/// Makes the transports of a group when its first rank asks, and keeps the others' for them.
class Exchange {
 public:
  explicit Exchange(Fabric fabric) : fabric_(fabric) {}

  std::unique_ptr<Transport> take(Rank rank, int ranks, const std::string& group) {
    return groups_.with([&](auto& groups) {
      auto& group_transports = groups[group];
      if (group_transports.empty()) group_transports = make(ranks);
      return std::move(group_transports[static_cast<std::size_t>(rank)]);
    });
  }

 private:
  std::vector<std::unique_ptr<Transport>> make(int ranks) const {
    using Sharing = transport::MemoryOptions::Sharing;
    transport::MemoryOptions options;
    options.sharing = fabric_ == Fabric::kMemory ? Sharing::kWindow : Sharing::kMessagesOnly;
    options.stage = 8_KiB;
    options.data_ring = 4_KiB;
    options.arena = 64_MiB;
    return transport::make_memory_transports(ranks, options);
  }

  Fabric fabric_;
  Guarded<std::map<std::string, std::vector<std::unique_ptr<Transport>>>> groups_;
};

}  // namespace

std::string name_of(Fabric fabric) {
  switch (fabric) {
    case Fabric::kMemory:
      return "memory";
    case Fabric::kMessages:
      return "messages";
    case Fabric::kShortWrites:
      return "short_writes";
    case Fabric::kShm:
      return "shm";
    case Fabric::kTcp:
      return "tcp";
  }
  return "?";
}

struct Job::Impl {
  Fabric fabric;
  int ranks;
  Config config;
  Exchange exchange;
};

Job::Job(Fabric fabric, int ranks, Config config)
    : impl_(new Impl{fabric, ranks, std::move(config), Exchange(fabric)}) {}
Job::~Job() = default;

int Job::ranks() const { return impl_->ranks; }

ProcessGroupPtr Job::join(Rank rank) {
  native::Options options;
  options.rank = rank;
  options.config = impl_->config;
  options.world_ranks.resize(static_cast<std::size_t>(impl_->ranks));
  std::iota(options.world_ranks.begin(), options.world_ranks.end(), 0);
  options.connect = [this, rank](
                        std::span<const Rank> members, const std::string& group, Deadline) {
    const auto self = std::find(members.begin(), members.end(), rank) - members.begin();
    return impl_->exchange.take(static_cast<Rank>(self), static_cast<int>(members.size()), group);
  };
  ProcessGroup::Options group;
  group.timeout = std::chrono::seconds(30);
  return std::make_shared<ProcessGroup>(
      native::make_backend(std::move(options), Deadline::after(group.timeout)), group);
}

}  // namespace peal::testing
