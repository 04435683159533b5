#include "peal/transport/liveness/heartbeats.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

#include "peal/base/error.h"
#include "peal/base/serialize.h"
#include "peal/net/frame.h"
#include "peal/net/socket.h"
#include "peal/net/tcp_options.h"
#include "peal/system/thread.h"
#include "peal/transport/liveness/beat.h"

namespace peal::transport {
struct Heartbeats::BeatConnection {
  BeatConnection(std::unique_ptr<net::Stream> s, const HeartbeatLimits& limits)
      : stream(std::move(s)), monitor(limits, Clock::now()) {}

  /// Reads the beats that have come; returns whether there were any. The number is limited, so that
  /// a peer that floods beats does not delay the others; the next look reads the rest.
  /// Errors: peer_lost (the other end is gone), mismatch (not a beat).
  bool read_beats() {
    constexpr int kMost = 1000;  // more than a minute of beats, at the usual pace
    bool received = false;
    for (int i = 0; i < kMost; ++i) {
      const auto body = reader.advance(*stream);
      if (!body) break;
      stopped = decode_beat(*body);
      received = true;
    }
    return received;
  }

  /// Returns whether the other end is still there.
  bool beat(std::string_view frame) {
    if (unsent.empty()) unsent = frame;
    const std::array<std::span<const std::byte>, 1> pieces = {bytes_of(unsent)};
    const net::Moved moved = stream->try_write(pieces);
    unsent.erase(0, static_cast<std::size_t>(moved.bytes.value));
    return !moved.closed;
  }

  /// The peer has sent a beat: ends the back-off.
  void end_back_off(TimePoint now) {
    sent_without_beat = 0_B;
    due = now;
  }

  /// Backs off from silent peers, and finally stops sending to them. A stopped process does not
  /// read, so beats fill its system's buffer. With a full buffer its host would look as if it were
  /// gone.
  bool is_due(Bytes size, TimePoint now, const HeartbeatLimits& limits) {
    constexpr Duration kLongestPause = std::chrono::seconds(5);
    constexpr Bytes kMostWithoutBeat = 16_KiB;
    constexpr Bytes kSeal = 32_B;  // around each beat, at most
    if (now < due || sent_without_beat >= kMostWithoutBeat) return false;
    sent_without_beat += size + kSeal;
    const bool is_silent = monitor.presence().state == Presence::State::kSilent;
    const Duration silence = is_silent ? monitor.presence().since : Duration{};
    due = now + std::max(Duration(limits.every) / 2, std::min(silence / 2, kLongestPause));
    return true;
  }

  std::unique_ptr<net::Stream> stream;
  PeerMonitor monitor;
  Bytes sent_without_beat{};  // of beats since the last beat of the peer
  TimePoint due{};            // when the next beat is due
  net::FrameReader reader{Bytes(sizeof(Rank) * kMostStopped), "beat"};
  std::vector<Rank> stopped;  // on the peer's host, by its last beat
  std::string unsent;
};

Heartbeats::Heartbeats(std::map<Rank, std::unique_ptr<net::Stream>>&& connections,
                       const HeartbeatLimits& limits,
                       Lost lost,
                       Stopped stopped)
    : limits_(limits),
      lost_(std::move(lost)),
      stopped_(std::move(stopped)),
      stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!stop_) throw system_error("cannot make an eventfd for heartbeats", errno);
  std::map<Rank, BeatConnection> watched;
  for (auto& [rank, stream] : connections) {
    net::repeat_evenly(stream->fd());
    watched.emplace(rank, BeatConnection(std::move(stream), limits));
  }
  thread_ = start_thread([this](std::map<Rank, BeatConnection> mine) { beat(std::move(mine)); },
                         std::move(watched));
}

Heartbeats::~Heartbeats() {
  if (!owner_.is_current()) {
    leave_to_parent(std::move(thread_));
    return;
  }
  ::eventfd_write(stop_.get(), 1);
  thread_.join();
}

Presence Heartbeats::presence(Rank peer) const {
  return known_.with([&](const std::map<Rank, Known>& known) -> Presence {
    if (const auto found = known.find(peer); found != known.end()) return found->second.presence;
    const bool is_stopped = std::ranges::any_of(known, [&](const auto& entry) {
      return std::ranges::find(entry.second.stopped, peer) != entry.second.stopped.end();
    });
    return {.state = is_stopped ? Presence::State::kStopped : Presence::State::kUnknown};
  });
}

void Heartbeats::beat(std::map<Rank, BeatConnection> connections) {
  std::array<pollfd, 1> entries = {pollfd{stop_.get(), POLLIN, 0}};
  TimePoint next = Clock::now();
  while (!net::poll_until(entries, Deadline(next))) {
    const TimePoint now = Clock::now();
    beat_ = net::frame_of(encode_beat(stopped_()));
    for (auto entry = connections.begin(); entry != connections.end();) {
      const bool goes_on = check(entry->first, entry->second, now);
      entry = goes_on ? std::next(entry) : connections.erase(entry);
    }
    next = now + limits_.every;
  }
}

/// A connection that damages beats damages everything else, so its peer is lost. If this process
/// runs out of memory, the peer is not lost.
Heartbeats::Finding Heartbeats::exchange_beats(BeatConnection& connection, TimePoint now) const {
  try {
    const bool received = connection.read_beats();
    connection.stream->try_flush();
    const bool answered = connection.stream->unacknowledged() == 0_B;
    const Bytes size(static_cast<std::int64_t>(beat_.size()));
    if (answered && received) connection.end_back_off(now);
    const bool beats = answered && connection.is_due(size, now, limits_);
    if (beats && !connection.beat(beat_)) return Finding::kClosed;
    connection.monitor.observe({.beat_received = received, .answered = answered}, now);
    return connection.monitor.is_lost() ? Finding::kLost : Finding::kFine;
  } catch (const Error& error) {
    const bool is_of_connection =
        error.kind() == ErrorKind::kPeerLost || error.kind() == ErrorKind::kMismatch;
    return is_of_connection && !connection.reader.has_ended() ? Finding::kDamaged
                                                              : Finding::kClosed;
  } catch (const std::exception&) {
    return Finding::kClosed;
  }
}

bool Heartbeats::check(Rank peer, BeatConnection& connection, TimePoint now) {
  const Finding finding = exchange_beats(connection, now);
  known_.with([&](auto& known) {
    if (finding == Finding::kClosed) {
      known.erase(peer);
    } else if (finding == Finding::kDamaged) {
      known[peer].presence = {.state = Presence::State::kDamaged};
    } else {
      known[peer] = {connection.monitor.presence(), connection.stopped};
    }
  });
  if (finding == Finding::kLost || finding == Finding::kDamaged) lost_(peer);
  return finding == Finding::kFine;
}

}  // namespace peal::transport
