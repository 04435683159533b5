#include "peal/transport/memory/memory.h"

#include <unistd.h>

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "peal/system/cpus.h"
#include "peal/system/fd.h"
#include "peal/system/mapping.h"
#include "peal/system/shared_file.h"
#include "peal/transport/shm/ring_channel.h"
#include "peal/transport/window/window.h"

namespace peal::transport {
namespace {

/// What all ranks share.
struct World {
  World(int ranks, const MemoryOptions& options)
      : layout(
            SegmentLayout{ranks, options.data_ring, options.mail_ring, options.stage}.bounded()) {
    for (int rank = 0; rank < ranks; ++rank) {
      segments.push_back(Mapping::anonymous(layout.size()));
      arena_files.push_back(make_shared_file("peal arena", 0_B));
      arenas.push_back(Mapping::of_file(arena_files.back().get(), options.arena));
      const auto index = static_cast<std::size_t>(rank);
      mail_threads.push_back(options.mail_threads.empty() ? std::make_shared<MailThread>()
                                                          : options.mail_threads[index]);
      bells.push_back(
          std::make_shared<Doorbell>(layout.doorbell_in(segment(rank), ChannelKind::kData)));
      bells.push_back(
          std::make_shared<Doorbell>(layout.doorbell_in(segment(rank), ChannelKind::kMail),
                                     mail_threads.back()->alarm().event()));
    }
  }

  std::byte* segment(Rank rank) const {
    return segments[static_cast<std::size_t>(rank)].bytes().data();
  }
  const std::shared_ptr<Doorbell>& bell(Rank rank, ChannelKind kind) const {
    return bells[static_cast<std::size_t>(rank) * kChannelKinds.size() +
                 static_cast<std::size_t>(kind)];
  }
  RingMemory ring(ChannelKind kind, Rank from, Rank to, Rank peer) const {
    return layout.ring_memory_in(segment(to), kind, from, peer);
  }

  SegmentLayout layout;
  std::vector<Mapping> segments;
  std::vector<Fd> arena_files;
  std::vector<Mapping> arenas;
  std::vector<std::shared_ptr<MailThread>> mail_threads;
  std::vector<std::shared_ptr<Doorbell>> bells;
};

std::unique_ptr<RingChannel> make_channel(const World& world, Rank self, ChannelKind kind) {
  std::vector<RingLink> links;
  for (Rank peer = 0; peer < world.layout.ranks; ++peer) {
    if (peer == self) continue;
    links.push_back({.outgoing = world.ring(kind, self, peer, peer),
                     .incoming = world.ring(kind, peer, self, peer),
                     .bell = world.bell(peer, kind)});
  }
  return std::make_unique<RingChannel>(world.bell(self, kind), links);
}

Window make_window(const std::shared_ptr<World>& world, Rank self, int ranks_per_host) {
  const Rank first = self / ranks_per_host * ranks_per_host;
  std::vector<Segment> segments;
  for (Rank rank = first; rank < first + ranks_per_host; ++rank) {
    segments.push_back({.control = world->layout.control_in(world->segment(rank)),
                        .stage = world->layout.stage_in(world->segment(rank)),
                        .arena = world->arenas[static_cast<std::size_t>(rank)].bytes()});
  }
  const int arena_file = world->arena_files[static_cast<std::size_t>(self)].get();
  return Window(self, first, std::move(segments), arena_file, world);
}

class MemoryTransport final : public Transport {
 public:
  MemoryTransport(std::shared_ptr<World> world, Rank self, int ranks_per_host)
      : world_(std::move(world)),
        data_(make_channel(*world_, self, ChannelKind::kData)),
        mail_(make_channel(*world_, self, ChannelKind::kMail)),
        mail_thread_(world_->mail_threads[static_cast<std::size_t>(self)]) {
    if (ranks_per_host > 0) window_ = make_window(world_, self, ranks_per_host);
  }

  Channel& data() override { return *data_; }
  Channel& mail() override { return *mail_; }
  std::optional<SharedMail> shared_mail() override { return SharedMail{*mail_, *mail_thread_}; }
  Window* window() override { return window_ ? &*window_ : nullptr; }
  void stop_linking() override {}
  int ranks_on_host() const override { return world_->layout.ranks; }
  int cpus_on_host() const override { return cpus_at_once(std::array{std::int64_t{::getpid()}}); }
  std::string describe(Rank) const override { return "a thread of this process"; }
  std::string host(Rank) const override { return ""; }
  Presence presence(Rank) const override { return {.state = Presence::State::kRunning}; }

 private:
  std::shared_ptr<World> world_;
  std::unique_ptr<RingChannel> data_;
  std::unique_ptr<RingChannel> mail_;
  std::shared_ptr<MailThread> mail_thread_;
  std::optional<Window> window_;
};

}  // namespace

std::vector<std::unique_ptr<Transport>> make_memory_transports(int ranks,
                                                               const MemoryOptions& options) {
  const auto world = std::make_shared<World>(ranks, options);
  const bool has_window = options.sharing == MemoryOptions::Sharing::kWindow;
  const int ranks_per_host = !has_window ? 0 : options.ranks_per_host.value_or(ranks);
  std::vector<std::unique_ptr<Transport>> transports;
  for (Rank rank = 0; rank < ranks; ++rank) {
    transports.push_back(std::make_unique<MemoryTransport>(world, rank, ranks_per_host));
  }
  return transports;
}

}  // namespace peal::transport
