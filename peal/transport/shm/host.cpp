#include "peal/transport/shm/host.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/serialize.h"
#include "peal/net/socket.h"
#include "peal/system/mapping.h"
#include "peal/system/shared_file.h"
#include "peal/transport/shm/offer.h"

namespace peal::transport {
namespace {

/// Segment, arena, the event of the process's alarm. The data bell and the mail bell follow if they
/// have events of their own.
constexpr std::size_t kOfferedFds = 3;

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
  throw Error(
      ErrorKind::kMismatch,
      fmt::format("it has {}, this rank has {}: give all ranks the same PEAL_STAGE and options",
                  print(other),
                  print(own)));
}

/// As much of `wanted` as the process may map for each of `ranks` ranks.
Bytes arena_within_limits(Bytes wanted, int ranks) {
  Bytes size = wanted;
  while (size > kSmallestArena && !can_map(size * ranks)) size = size / 2;
  return std::max(size, kSmallestArena);
}

/// Calls `exchange(rank, connection, deadline)` for each connection. Its errors do not name the
/// rank. If a rank is lost, the other connections are still read for a short time: the lost rank
/// may have left because of a mismatch whose data this rank has not read yet. Returns the first
/// loss. `lost_before`: a loss from an earlier exchange.
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

/// A pidfd of the process at the other end. Empty if the system cannot give one.
Fd process_at(int connection) {
  const pid_t process = net::neighbour_at(connection).process;
  if (process <= 0) return Fd();
  Fd fd(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
  // If the connection is still open, the pid has not been reused meanwhile.
  return net::is_closed(connection) ? Fd() : std::move(fd);
}

}  // namespace

/// The memory that windows keep alive.
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
  std::vector<Share> shares;  // in the order of `ranks`
};

struct Host::Neighbour {
  std::array<std::shared_ptr<Doorbell>, kChannelKinds.size()> bells;
  std::shared_ptr<PeerProcess> process;
  Fd connection;  // set if this connection is the peer's only sign of the end of this process

  // During the exchange:
  Fd sign;  // a pidfd of the process, if the system gives one
  pid_t pid = 0;
  bool is_needed_by_peer = false;  // the connection
};

std::shared_ptr<Doorbell> Host::make_own_bell(ChannelKind kind, HostOptions::Others others) const {
  BellState& state = memory_->layout.doorbell_in(memory_->segment(memory_->self), kind);
  if (others == HostOptions::Others::kOnOtherHosts) {
    return std::make_shared<Doorbell>(state, std::make_shared<Event>());
  }
  return kind == ChannelKind::kData ? std::make_shared<Doorbell>(state)
                                    : std::make_shared<Doorbell>(state, peers_->alarm().event());
}

Host::Host(const HostOptions& options, std::map<Rank, Fd>& connections, Deadline deadline)
    : peers_(options.peers), memory_(std::make_shared<Memory>(options)) {
  for (const ChannelKind kind : kChannelKinds) {
    bells_[static_cast<std::size_t>(kind)] = make_own_bell(kind, options.others);
  }
  for (const auto& [rank, connection] : connections) {
    neighbours_[rank] = std::make_unique<Neighbour>();
  }
  // All offers are sent first, so that no two ranks wait for each other.
  const auto send_error = exchange_with_all(
      connections, deadline, {}, [&](Rank rank, const Fd& connection, Deadline until) {
        offer_to(*neighbours_[rank], connection.get(), until);
      });
  const auto receive_error = exchange_with_all(
      connections, deadline, send_error, [&](Rank rank, const Fd& connection, Deadline until) {
        accept_from(rank, *neighbours_[rank], connection.get(), until);
      });
  // A peer that left after its offer left because of another peer that made no offer.
  if (receive_error || send_error) throw Error(receive_error ? *receive_error : *send_error);
  memory_->segment_file.reset();
  for (auto& [rank, neighbour] : neighbours_) keep(*neighbour, std::move(connections.at(rank)));
}

Host::~Host() = default;

/// The peer keeps its end of the connection open, because it waits for this offer.
void Host::offer_to(Neighbour& neighbour, int connection, Deadline deadline) const {
  neighbour.pid = net::neighbour_at(connection).process;
  neighbour.sign = process_at(connection);
  const std::string text = encode({.layout = memory_->layout,
                                   .arena = memory_->arena_size,
                                   .process = peers_->number(),
                                   .needs_connection = !neighbour.sign});
  net::write_all(connection, bytes_of(text), deadline);
  std::vector<int> fds = {
      memory_->segment_file.get(), memory_->arena_file.get(), peers_->alarm().event()->fd()};
  if (has_own_events()) {
    for (const auto& bell : bells_) fds.push_back(bell->event()->fd());
  }
  net::send_fds(connection, fds, deadline);
}

void Host::accept_from(Rank rank, Neighbour& neighbour, int connection, Deadline deadline) {
  std::string text(kOfferSize, '\0');
  net::read_all(connection, std::as_writable_bytes(std::span(text)), deadline);
  const Offer offer = decode_offer(text);
  check_same(memory_->layout, offer.layout);
  const std::size_t own_events = has_own_events() ? kChannelKinds.size() : 0;
  std::vector<Fd> fds = net::receive_fds(connection, kOfferedFds + own_events, deadline);
  check_shared_file(fds[0].get(), offer.layout.size());
  check_shared_file(fds[1].get(), 0_B);

  Memory::Share& share = memory_->shares[memory_->index_of(rank)];
  share = {Mapping::of_file(fds[0].get(), offer.layout.size()),
           Mapping::of_file(fds[1].get(), offer.arena)};
  neighbour.is_needed_by_peer = offer.needs_connection;
  HostPeer peer{nullptr, std::make_shared<Event>(std::move(fds[2]))};
  if (neighbour.sign) {
    peer.process = std::make_shared<PeerProcess>(std::move(neighbour.sign), neighbour.pid);
    peer = peers_->meet(offer.process, std::move(peer));
    neighbour.process = peer.process;
  }
  for (const ChannelKind kind : kChannelKinds) {
    const auto k = static_cast<std::size_t>(kind);
    BellState& state = offer.layout.doorbell_in(share.segment.bytes().data(), kind);
    std::shared_ptr<Event> event = kind == ChannelKind::kData ? nullptr : peer.alarm;
    if (has_own_events()) event = std::make_shared<Event>(std::move(fds[kOfferedFds + k]));
    neighbour.bells[k] = std::make_shared<Doorbell>(state, std::move(event));
  }
}

/// Keeps what the group needs after the exchange. The connection usually closes.
void Host::keep(Neighbour& neighbour, Fd connection) {
  if (!neighbour.process) {  // children that the process forks may hold the connection open
    neighbour.process = std::make_shared<PeerProcess>(std::move(connection), neighbour.pid);
    peers_->alarm().watch(neighbour.process);
  } else if (neighbour.is_needed_by_peer) {
    neighbour.connection = std::move(connection);
  }
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
                     .process = neighbour->process});
  }
  return std::make_unique<RingChannel>(bells_[static_cast<std::size_t>(kind)], links);
}

Presence Host::presence(Rank rank) const {
  const auto found = neighbours_.find(rank);
  if (found == neighbours_.end()) return {.state = Presence::State::kRunning};  // this rank
  PeerProcess& process = *found->second->process;
  if (process.has_ended()) return {.state = Presence::State::kEnded};
  return presence_of_process(process.pid());
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
