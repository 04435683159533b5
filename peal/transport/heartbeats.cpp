#include "peal/transport/heartbeats.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <array>
#include <cerrno>
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
std::optional<bool> hear(int fd) {
  std::array<std::byte, 64> beats;
  bool heard = false;
  while (true) {
    const net::Moved moved = net::try_read(fd, beats);
    if (moved.closed) return std::nullopt;
    if (moved.bytes == 0_B) return heard;
    heard = true;
  }
}

}  // namespace

struct Heartbeats::Line {
  Fd fd;
  Pulse pulse;
};

Heartbeats::Heartbeats(std::map<Rank, Fd>&& connections, const PulseLimits& limits, Lost lost)
    : limits_(limits), lost_(std::move(lost)), stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!stop_) throw system_error("cannot make an eventfd for heartbeats", errno);
  std::map<Rank, Line> lines;
  for (auto& [rank, fd] : connections) {
    net::repeat_evenly(fd.get());
    lines.emplace(rank, Line{std::move(fd), Pulse(limits, Clock::now())});
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
      const bool goes_on = attend(entry->first, entry->second, now);
      entry = goes_on ? std::next(entry) : lines.erase(entry);
    }
    next = now + limits_.every;
  }
}

bool Heartbeats::attend(Rank peer, Line& line, TimePoint now) {
  const std::optional<bool> heard = hear(line.fd.get());
  const bool answered = net::unacknowledged(line.fd.get()) == 0_B;
  const std::array<std::span<const std::byte>, 1> beat = {kBeat};
  if (!heard || (answered && net::try_write(line.fd.get(), beat).closed)) {
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
