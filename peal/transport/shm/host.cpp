#include "peal/transport/shm/host.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/net/framing.h"
#include "peal/net/socket.h"
#include "peal/transport/mapping.h"
#include "peal/transport/shared_file.h"
#include "peal/transport/shm/offer.h"

namespace peal::transport {
namespace {

/// Segment, arena, data bell, mail bell.
constexpr std::size_t kOfferedFds = 4;

constexpr Bytes kSmallestArena = 1_MiB;

void check_same(const SegmentLayout& own, const SegmentLayout& other) {
  if (own == other) return;
  const auto print = [](const SegmentLayout& layout) {
    return fmt::format("{} ranks on the host, rings of {} and {} bytes and a stage of {} bytes",
                       layout.ranks,
                       layout.data_ring.value,
                       layout.mail_ring.value,
                       layout.stage.value);
  };
  throw Error(ErrorKind::kMismatch,
              fmt::format("it has {}, this rank {}: give all ranks the same PEAL_STAGE and options",
                          print(other),
                          print(own)));
}

/// As much of `wanted` as the process may have for each of so many ranks.
Bytes arena_within_limits(Bytes wanted, int ranks) {
  Bytes size = wanted;
  while (size > kSmallestArena && !can_map(size * ranks)) size = size / 2;
  return std::max(size, kSmallestArena);
}

/// Calls `exchange(rank, connection, deadline)` for each. Its errors do not say which rank they are
/// about, and a rank that is gone may have seen what this one has not read yet: that the two do not
/// fit. So a loss is returned, the first of them; of the others then only counts what has come
/// already. `lost_before`: by an earlier exchange.
template <class Exchange>
std::optional<Error> exchange_with_all(const std::map<Rank, Fd>& connections,
                                       Deadline deadline,
                                       const std::optional<Error>& lost_before,
                                       const Exchange& exchange) {
  constexpr auto kUnderWay = std::chrono::milliseconds(500);
  std::optional<Error> lost;
  for (auto& [rank, connection] : connections) {
    const bool is_lost = lost || lost_before;
    try {
      exchange(rank, connection, is_lost ? deadline.within(kUnderWay) : deadline);
    } catch (const Error& error) {
      if (is_lost && error.kind() == ErrorKind::kTimeout) continue;
      Error named(error.kind(),
                  fmt::format("cannot share memory with rank {}: {}", rank, error.message()));
      if (error.kind() != ErrorKind::kPeerLost) throw named;
      if (!lost) lost = std::move(named);
    }
  }
  return lost;
}

/// The process at the other end, as a descriptor that ends with it; none where the system gives
/// none.
Fd process_at(int connection) {
  const pid_t process = net::neighbour_at(connection).process;
  if (process <= 0) return Fd();
  Fd fd(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
  // If the connection is still open, the number has not been given to another process meanwhile.
  return net::is_closed(connection) ? Fd() : std::move(fd);
}

}  // namespace

/// What windows keep alive.
struct Host::Memory {
  struct Share {
    Mapping segment;
    Mapping arena;
  };

  explicit Memory(const HostOptions& options)
      : self(options.self),
        ranks(options.ranks),
        layout(options.layout),
        shares(options.ranks.size()) {
    layout.ranks = static_cast<int>(ranks.size());
    layout = layout.bounded();
    arena_size = arena_within_limits(options.arena, layout.ranks);
    segment_file = make_shared_file("peal segment", layout.size());
    arena_file = make_shared_file("peal arena", 0_B);
    shares[index_of(self)] = {Mapping::of_file(segment_file.get(), layout.size()),
                              Mapping::of_file(arena_file.get(), arena_size)};
  }

  std::size_t index_of(Rank rank) const {
    return static_cast<std::size_t>(std::ranges::find(ranks, rank) - ranks.begin());
  }
  std::byte* segment(Rank rank) const { return shares[index_of(rank)].segment.bytes().data(); }

  Rank self;
  std::vector<Rank> ranks;
  SegmentLayout layout;
  Bytes arena_size;
  Fd segment_file;
  Fd arena_file;
  std::vector<Share> shares;  // as `ranks`
};

struct Host::Neighbour {
  /// Ends when the process does, however it ends. The connection may be held open by children that
  /// the process forked.
  int presence() const { return process ? process.get() : connection.get(); }

  std::array<std::shared_ptr<Doorbell>, kChannelKinds.size()> bells;
  Fd connection;
  pid_t pid = 0;  // as it is seen from here; 0 where it is not
  Fd process;
};

Host::Host(const HostOptions& options, std::map<Rank, Fd>& connections, Deadline deadline)
    : memory_(std::make_shared<Memory>(options)) {
  for (const ChannelKind kind : kChannelKinds) {
    bells_[static_cast<std::size_t>(kind)] =
        std::make_shared<Doorbell>(memory_->layout.bell_in(memory_->segment(options.self), kind));
  }
  // All offers first, so that no rank waits for one that waits for it.
  const auto deaf =
      exchange_with_all(connections, deadline, {}, [&](Rank, const Fd& connection, Deadline until) {
        offer_to(connection.get(), until);
      });
  const auto silent = exchange_with_all(
      connections, deadline, deaf, [&](Rank rank, const Fd& connection, Deadline until) {
        neighbours_[rank] = accept_from(rank, connection.get(), until);
      });
  // Who has made its offer and is gone has left because of another; who made none is the other.
  if (silent || deaf) throw Error(silent ? *silent : *deaf);
  memory_->segment_file.reset();
  for (auto& [rank, neighbour] : neighbours_) {
    neighbour->connection = std::move(connections.at(rank));
  }
}

Host::~Host() = default;

void Host::offer_to(int connection, Deadline deadline) const {
  const std::string text = encode({memory_->layout, memory_->arena_size});
  net::write_all(connection, net::bytes_of(text), deadline);
  const std::array<int, kOfferedFds> fds = {memory_->segment_file.get(),
                                            memory_->arena_file.get(),
                                            bells_[0]->event(),
                                            bells_[1]->event()};
  net::send_fds(connection, fds, deadline);
}

std::unique_ptr<Host::Neighbour> Host::accept_from(Rank rank, int connection, Deadline deadline) {
  std::string text(kOfferSize, '\0');
  net::read_all(connection, std::as_writable_bytes(std::span(text)), deadline);
  const Offer offer = decode_offer(text);
  check_same(memory_->layout, offer.layout);
  std::vector<Fd> fds = net::receive_fds(connection, kOfferedFds, deadline);
  check_shared_file(fds[0].get(), offer.layout.size());
  check_shared_file(fds[1].get(), 0_B);

  Memory::Share& share = memory_->shares[memory_->index_of(rank)];
  share = {Mapping::of_file(fds[0].get(), offer.layout.size()),
           Mapping::of_file(fds[1].get(), offer.arena)};
  auto neighbour = std::make_unique<Neighbour>();
  for (const ChannelKind kind : kChannelKinds) {
    const auto k = static_cast<std::size_t>(kind);
    neighbour->bells[k] = std::make_shared<Doorbell>(
        offer.layout.bell_in(share.segment.bytes().data(), kind), std::move(fds[2 + k]));
  }
  neighbour->pid = net::neighbour_at(connection).process;
  neighbour->process = process_at(connection);
  return neighbour;
}

RingMemory Host::ring(ChannelKind kind, Rank from, Rank to, Rank peer) const {
  return memory_->layout.ring_memory_in(
      memory_->segment(to), kind, static_cast<int>(memory_->index_of(from)), peer);
}

std::unique_ptr<RingChannel> Host::make_channel(ChannelKind kind) {
  std::vector<RingLink> links;
  for (const auto& [rank, neighbour] : neighbours_) {
    links.push_back({.outgoing = ring(kind, memory_->self, rank, rank),
                     .incoming = ring(kind, rank, memory_->self, rank),
                     .bell = neighbour->bells[static_cast<std::size_t>(kind)],
                     .presence = neighbour->presence()});
  }
  return std::make_unique<RingChannel>(bells_[static_cast<std::size_t>(kind)], links);
}

Presence Host::presence(Rank rank) const {
  const auto found = neighbours_.find(rank);
  if (found == neighbours_.end()) return {.state = Presence::State::kRunning};  // this one
  const Neighbour& neighbour = *found->second;
  if (has_ended(neighbour.presence())) return {.state = Presence::State::kEnded};
  return presence_of_process(neighbour.pid);
}

Window Host::make_window() const {
  std::vector<Segment> segments;
  for (const Memory::Share& share : memory_->shares) {
    std::byte* const segment = share.segment.bytes().data();
    segments.push_back({.control = memory_->layout.control_in(segment),
                        .stage = memory_->layout.stage_in(segment),
                        .arena = share.arena.bytes()});
  }
  return Window(memory_->self,
                memory_->ranks.front(),
                std::move(segments),
                memory_->arena_file.get(),
                memory_);
}

}  // namespace peal::transport
