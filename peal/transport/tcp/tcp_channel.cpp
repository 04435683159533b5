#include "peal/transport/tcp/tcp_channel.h"

#include <atomic>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/net/socket.h"
#include "peal/net/tcp_options.h"

namespace peal::transport {

namespace {

/// The most sent bytes that a connection may hold. More bytes would leave the caches before they
/// are read. Measured between two hosts on one machine: 64 MiB take 24 ms instead of 37 under BBR,
/// and 21 to 25 instead of 25 under cubic.
constexpr Bytes kSendBuffer = 256_KiB;
/// A line that holds more than this gets all the buffer that the system grants. (Between processes
/// of one machine a line holds 30 to 60 KiB.)
constexpr Bytes kShortLine = kSendBuffer / 2;
/// How many bytes are sent between two looks at the line. A look costs a system call.
constexpr Bytes kBytesPerLook = 1_MiB;

}  // namespace

struct TcpChannel::Peer {
  explicit Peer(std::unique_ptr<net::Stream> connection)
      : stream(std::move(connection)),
        description(fmt::format(
            "{} by {}", net::peer_name(stream->fd()), net::congestion_control(stream->fd()))) {
    net::bound_send_buffer(stream->fd(), kSendBuffer);
  }

  /// Adapts the send buffer to the line.
  void has_sent(Bytes bytes) {
    if (!is_bounded) return;
    unlooked += bytes;
    if (unlooked < kBytesPerLook) return;
    unlooked = 0_B;
    if (net::line_capacity(stream->fd()) <= kShortLine) return;
    net::unbound_send_buffer(stream->fd());
    is_bounded = false;
  }

  std::unique_ptr<net::Stream> stream;
  std::string description;  // kept here, because the system forgets it when the peer leaves
  // Used by the sending thread.
  bool is_bounded = true;
  Bytes unlooked;
  /// The peer does not read any more. Bytes that it sent before may still arrive.
  std::atomic<bool> gone = false;
};

/// The stream to a rank. The link is added once, by any thread, while others use the slot.
struct TcpChannel::Slot {
  std::unique_ptr<Peer> owned;
  std::atomic<Peer*> peer = nullptr;
  std::atomic<Fate> fate = Fate::kOpen;
  std::atomic<bool> is_wanted = false;
  std::optional<Error> error;  // of Fate::kFailed; set before it
};

TcpChannel::TcpChannel(std::span<const Rank> peers,
                       std::map<Rank, std::unique_ptr<net::Stream>>&& links,
                       Events events)
    : events_(std::move(events)) {
  for (const Rank peer : peers) {
    const auto index = static_cast<std::size_t>(peer);
    if (slots_.size() <= index) slots_.resize(index + 1);
    slots_[index] = std::make_unique<Slot>();
  }
  for (auto& [rank, link] : links) add(rank, std::move(link));
}

TcpChannel::~TcpChannel() {
  for (const auto& slot : slots_) {
    if (slot && slot->owned) net::hang_up(*slot->owned->stream);
  }
}

TcpChannel::Slot& TcpChannel::slot(Rank rank) const {
  const auto index = static_cast<std::size_t>(rank);
  if (rank < 0 || index >= slots_.size() || !slots_[index]) {
    throw Error(ErrorKind::kUsage, fmt::format("this channel has no stream to rank {}", rank));
  }
  return *slots_[index];
}

TcpChannel::Peer* TcpChannel::try_peer(Rank rank) const { return slot(rank).peer.load(); }

void TcpChannel::add(Rank rank, std::unique_ptr<net::Stream> link) {
  Slot& to = slot(rank);
  to.owned = std::make_unique<Peer>(std::move(link));
  to.peer.store(to.owned.get());
  // A host that was lost meanwhile stays lost.
  if (to.fate.load() == Fate::kCutOff) net::cut_off(to.owned->stream->fd());
  bell_.ring();
}

void TcpChannel::end_without_link(Rank rank, Fate fate) {
  Fate open = Fate::kOpen;
  slot(rank).fate.compare_exchange_strong(open, fate);
  bell_.ring();
}

void TcpChannel::fail(Rank rank, const Error& error) {
  if (slot(rank).fate.load() != Fate::kOpen) return;  // other threads may read the error
  slot(rank).error = error;
  end_without_link(rank, Fate::kFailed);
}

void TcpChannel::cut_off(Rank rank) {
  end_without_link(rank, Fate::kCutOff);
  if (const Peer* const lost = try_peer(rank)) net::cut_off(lost->stream->fd());
}

LinkState TcpChannel::link_state(Rank rank) const {
  const Slot& to = slot(rank);
  if (to.peer.load() != nullptr) return LinkState::kMade;
  switch (to.fate.load()) {
    case Fate::kOpen:
      return LinkState::kNone;
    case Fate::kRefused:
      return LinkState::kRefused;
    case Fate::kCutOff:
    case Fate::kFailed:
      break;
  }
  return LinkState::kMade;  // and ended
}

Transfer TcpChannel::without_link(Rank rank) {
  Slot& to = slot(rank);
  switch (to.fate.load()) {
    case Fate::kOpen:
      if (!to.is_wanted.exchange(true)) events_.want(rank);
      return {};
    case Fate::kRefused:
    case Fate::kCutOff:
      return {0_B, true};
    case Fate::kFailed:
      break;
  }
  throw Error(*to.error);
}

/// Replaces an error of a stream by one that names the rank. A stream knows only the address of its
/// other end, which may be that of a relay.
template <class Action>
auto TcpChannel::attempt(Rank rank, Action action) const {
  try {
    return action();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kPeerLost) throw;
    throw events_.loss(rank, error.message());
  }
}

Transfer TcpChannel::try_send(Rank rank, std::span<const ConstPiece> pieces) {
  Peer* const to = try_peer(rank);
  if (to == nullptr) return without_link(rank);
  if (to->gone) return {0_B, true};
  const net::Moved moved = attempt(rank, [&] { return to->stream->try_write(pieces); });
  if (moved.closed) to->gone = true;
  to->has_sent(moved.bytes);
  return {moved.bytes, moved.closed, moved.held};
}

Transfer TcpChannel::try_receive(Rank rank, std::span<std::byte> into) {
  Peer* const from = try_peer(rank);
  if (from == nullptr) return without_link(rank);
  const net::Moved moved = attempt(rank, [&] { return from->stream->try_read(into); });
  if (moved.closed) from->gone = true;
  // A thread that sleeps on this stream does not notice the held bytes, and may have to flush them.
  if (moved.held) bell_.ring_if_asleep();
  return {moved.bytes, moved.closed};
}

bool TcpChannel::try_flush(Rank rank) {
  Peer* const to = try_peer(rank);
  return to == nullptr || to->gone || attempt(rank, [&] { return to->stream->try_flush(); });
}

/// Bytes that the peer's system has not taken are lost if the peer sends anything after this end is
/// closed, because the answer to that resets the connection.
Bytes TcpChannel::unacknowledged(Rank rank) const {
  const Peer* const to = try_peer(rank);
  return to == nullptr || to->gone ? 0_B : to->stream->unacknowledged();
}

void TcpChannel::wait(std::span<const Interest> interests, Deadline deadline) {
  wait_by_poll(*this, interests, deadline, entries_);
}

bool TcpChannel::prepare(std::span<const Interest> interests, std::vector<pollfd>& entries) {
  watched_.clear();
  entries.push_back({bell_.event()->fd(), POLLIN, 0});
  if (interests.empty()) return true;  // only `interrupt` ends this sleep
  bell_.announce_sleep();              // before the check for work: see Doorbell
  for (const Interest& interest : interests) {
    Peer* const other = try_peer(interest.peer);
    if (other == nullptr) {  // `add` and `end_without_link` ring the bell
      if (link_state(interest.peer) != LinkState::kNone) return false;
      continue;
    }
    const short events = interest.readiness == Readiness::kReadable ? POLLIN : POLLOUT;
    if (events == POLLIN && other->stream->has_read_ahead()) return false;
    entries.push_back({other->stream->fd(), static_cast<short>(events | POLLRDHUP), 0});
    watched_.push_back(other);
  }
  return true;  // poll(2) itself detects all else that is ready
}

void TcpChannel::finish(std::span<const pollfd> entries) {
  bell_.end_sleep();
  if (entries[0].revents != 0) bell_.event()->reset_count();
  for (std::size_t i = 0; i < watched_.size(); ++i) {
    // A peer ends its stream only when it leaves.
    if ((entries[i + 1].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0) watched_[i]->gone = true;
  }
}

std::string TcpChannel::describe(Rank rank) const {
  const Slot& to = slot(rank);
  if (const Peer* const linked = to.peer.load()) return linked->description;
  return to.is_wanted.load() ? "(it has not accepted a connection; does a firewall block it?)" : "";
}

}  // namespace peal::transport
