#include "peal/transport/heartbeats.h"

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
#include "peal/base/thread.h"
#include "peal/net/frame.h"
#include "peal/net/framing.h"
#include "peal/net/line.h"
#include "peal/net/socket.h"
#include "peal/transport/beat.h"

namespace peal::transport {
struct Heartbeats::Line {
  Line(std::unique_ptr<net::Stream> s, const PulseLimits& limits)
      : stream(std::move(s)), pulse(limits, Clock::now()) {}

  /// Takes the beats that have come; returns whether there were any. A peer that sends them without
  /// end gets no more of the thread than the others: the rest waits for the next look. Errors:
  /// peer_lost when the other end is gone, mismatch for what is no beat.
  bool hear() {
    constexpr int kMost = 1000;  // a pause of a minute and more, at the usual pace
    bool heard = false;
    for (int i = 0; i < kMost; ++i) {
      const auto body = reader.advance(*stream);
      if (!body) break;
      stopped = decode_beat(*body);
      heard = true;
    }
    return heard;
  }

  /// Returns whether the other end is there.
  bool beat(std::string_view frame) {
    if (unsent.empty()) unsent = frame;
    const std::array<std::span<const std::byte>, 1> pieces = {net::bytes_of(unsent)};
    const net::Moved moved = stream->try_write(pieces);
    unsent.erase(0, static_cast<std::size_t>(moved.bytes.value));
    return !moved.closed;
  }

  /// What a process that is stopped does not read stays in its system's buffer, and once that is
  /// full it looks as if its host were gone. So who is silent hears less and less, and at last
  /// nothing more.
  bool is_due(bool heard, Bytes size, TimePoint now, const PulseLimits& limits) {
    constexpr Duration kLongestPause = std::chrono::seconds(5);
    constexpr Bytes kMostUnheard = 16_KiB;
    constexpr Bytes kSeal = 32_B;  // around each beat, at most
    if (heard) {
      unheard = 0_B;
      due = now;
    }
    if (now < due || unheard >= kMostUnheard) return false;
    unheard += size + kSeal;
    const bool is_silent = pulse.presence().state == Presence::State::kSilent;
    const Duration silence = is_silent ? pulse.presence().since : Duration{};
    due = now + std::max(Duration(limits.every) / 2, std::min(silence / 2, kLongestPause));
    return true;
  }

  std::unique_ptr<net::Stream> stream;
  Pulse pulse;
  Bytes unheard{};  // of beats since the peer's last one
  TimePoint due{};  // the next beat
  net::FrameReader reader{Bytes(sizeof(Rank) * kMostStopped), "beat"};
  std::vector<Rank> stopped;  // beside the peer, as it said last
  std::string unsent;
};

Heartbeats::Heartbeats(std::map<Rank, std::unique_ptr<net::Stream>>&& connections,
                       const PulseLimits& limits,
                       Lost lost,
                       Stopped stopped)
    : limits_(limits),
      lost_(std::move(lost)),
      stopped_(std::move(stopped)),
      stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!stop_) throw system_error("cannot make an eventfd for heartbeats", errno);
  std::map<Rank, Line> lines;
  for (auto& [rank, stream] : connections) {
    net::repeat_evenly(stream->fd());
    lines.emplace(rank, Line(std::move(stream), limits));
  }
  thread_ =
      start_thread([this](std::map<Rank, Line> mine) { beat(std::move(mine)); }, std::move(lines));
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

void Heartbeats::beat(std::map<Rank, Line> lines) {
  std::array<pollfd, 1> entries = {pollfd{stop_.get(), POLLIN, 0}};
  TimePoint next = Clock::now();
  while (!net::poll_until(entries, Deadline(next))) {
    const TimePoint now = Clock::now();
    beat_ = net::frame_of(encode_beat(stopped_()));
    for (auto entry = lines.begin(); entry != lines.end();) {
      const bool goes_on = attend(entry->first, entry->second, now);
      entry = goes_on ? std::next(entry) : lines.erase(entry);
    }
    next = now + limits_.every;
  }
}

/// A line on which beats are damaged damages everything else. Where this process cannot go on, for
/// want of memory, the peer is not to blame.
Heartbeats::Finding Heartbeats::look_at(Line& line, TimePoint now) const {
  try {
    const bool heard = line.hear();
    line.stream->try_flush();
    const bool answered = line.stream->unacknowledged() == 0_B;
    const Bytes size(static_cast<std::int64_t>(beat_.size()));
    const bool beats = answered && line.is_due(heard, size, now, limits_);
    if (beats && !line.beat(beat_)) return Finding::kOver;
    line.pulse.look({.heard = heard, .answered = answered}, now);
    return line.pulse.is_lost() ? Finding::kLost : Finding::kFine;
  } catch (const Error& error) {
    const bool is_of_line =
        error.kind() == ErrorKind::kPeerLost || error.kind() == ErrorKind::kMismatch;
    return is_of_line && !line.reader.has_ended() ? Finding::kDamaged : Finding::kOver;
  } catch (const std::exception&) {
    return Finding::kOver;
  }
}

bool Heartbeats::attend(Rank peer, Line& line, TimePoint now) {
  const Finding finding = look_at(line, now);
  known_.with([&](auto& known) {
    if (finding == Finding::kOver) {
      known.erase(peer);
    } else if (finding == Finding::kDamaged) {
      known[peer].presence = {.state = Presence::State::kDamaged};
    } else {
      known[peer] = {line.pulse.presence(), line.stopped};
    }
  });
  if (finding == Finding::kLost || finding == Finding::kDamaged) lost_(peer);
  return finding == Finding::kFine;
}

}  // namespace peal::transport
