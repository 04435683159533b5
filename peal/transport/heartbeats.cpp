#include "peal/transport/heartbeats.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <array>
#include <cerrno>
#include <exception>
#include <iterator>
#include <optional>
#include <utility>

#include "peal/base/error.h"
#include "peal/base/thread.h"
#include "peal/net/line.h"
#include "peal/net/socket.h"

namespace peal::transport {
namespace {

constexpr std::array kBeat = {std::byte{0x70}};

/// Takes what has come. Nothing when the other end is gone.
std::optional<bool> hear(net::Stream& stream) {
  std::array<std::byte, 64> beats;
  bool heard = false;
  while (true) {
    const net::Moved moved = stream.try_read(beats);
    if (moved.closed) return std::nullopt;
    if (moved.bytes == 0_B) return heard;
    heard = true;
  }
}

}  // namespace

struct Heartbeats::Line {
  std::unique_ptr<net::Stream> stream;
  Pulse pulse;
};

Heartbeats::Heartbeats(std::map<Rank, std::unique_ptr<net::Stream>>&& connections,
                       const PulseLimits& limits,
                       Lost lost)
    : limits_(limits), lost_(std::move(lost)), stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!stop_) throw system_error("cannot make an eventfd for heartbeats", errno);
  std::map<Rank, Line> lines;
  for (auto& [rank, stream] : connections) {
    net::repeat_evenly(stream->fd());
    lines.emplace(rank, Line{std::move(stream), Pulse(limits, Clock::now())});
  }
  thread_ =
      start_thread([this](std::map<Rank, Line> mine) { beat(std::move(mine)); }, std::move(lines));
}

Heartbeats::~Heartbeats() {
  ::eventfd_write(stop_.get(), 1);
  thread_.join();
}

Presence Heartbeats::presence(Rank peer) const {
  return known_.with([&](const std::map<Rank, Presence>& known) {
    const auto found = known.find(peer);
    return found == known.end() ? Presence{} : found->second;
  });
}

void Heartbeats::beat(std::map<Rank, Line> lines) {
  std::array<pollfd, 1> entries = {pollfd{stop_.get(), POLLIN, 0}};
  TimePoint next = Clock::now();
  while (!net::poll_until(entries, Deadline(next))) {
    const TimePoint now = Clock::now();
    for (auto entry = lines.begin(); entry != lines.end();) {
      const bool goes_on = try_attend(entry->first, entry->second, now);
      entry = goes_on ? std::next(entry) : lines.erase(entry);
    }
    next = now + limits_.every;
  }
}

/// A line on which beats are damaged damages everything else.
bool Heartbeats::try_attend(Rank peer, Line& line, TimePoint now) {
  try {
    return attend(peer, line, now);
  } catch (const std::exception&) {
    known_.with([&](auto& known) { known[peer] = {.state = Presence::State::kDamaged}; });
    lost_(peer);
    return false;
  }
}

bool Heartbeats::attend(Rank peer, Line& line, TimePoint now) {
  net::Stream& stream = *line.stream;
  const std::optional<bool> heard = hear(stream);
  stream.try_flush();
  const bool answered = stream.unacknowledged() == 0_B;
  const std::array<std::span<const std::byte>, 1> beat = {kBeat};
  if (!heard || (answered && stream.try_write(beat).closed)) {
    known_.with([&](auto& known) { known.erase(peer); });
    return false;
  }
  line.pulse.look({.heard = *heard, .answered = answered}, now);
  known_.with([&](auto& known) { known[peer] = line.pulse.presence(); });
  if (!line.pulse.is_lost()) return true;
  lost_(peer);
  return false;
}

}  // namespace peal::transport
