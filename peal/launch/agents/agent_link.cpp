#include "peal/launch/agents/agent_link.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace peal::launch::agents {
namespace {

/// A longer pause between two calls of `beat` means that this process did not run.
constexpr Duration kOwnPause = std::chrono::seconds(1);
/// How long a silence counts for `patience`.
constexpr Duration kRemembered = std::chrono::seconds(10);

}  // namespace

AgentLink::AgentLink(Fd in, Fd out, TimePoint now)
    : in_(std::move(in)),
      out_(std::move(out)),
      heard_(now),
      longest_at_(now),
      sent_(now),
      beat_(now) {
  for (const int fd : {in_.get(), out_.get()}) ::fcntl(fd, F_SETFL, O_NONBLOCK);
}

void AgentLink::send(FrameKind kind, std::string_view payload) {
  if (is_closed_) return;
  queue_.push_back(encode(kind, payload));
  queued_ += queue_.back().size();
  write_some();
}

void AgentLink::write_some() {
  while (!queue_.empty() && !is_closed_) {
    const std::string_view rest = std::string_view(queue_.front()).substr(written_);
    const auto wrote = ::write(out_.get(), rest.data(), rest.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && errno == EAGAIN) return;
    if (wrote < 0) return close();
    sent_ = Clock::now();
    queued_ -= static_cast<std::size_t>(wrote);
    written_ += static_cast<std::size_t>(wrote);
    if (written_ < queue_.front().size()) return;
    queue_.pop_front();
    written_ = 0;
  }
}

std::optional<std::string> AgentLink::receive(TimePoint now) {
  if (is_closed_) return std::nullopt;
  std::string bytes(kMostRead, '\0');
  const auto got = ::read(in_.get(), bytes.data(), bytes.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  if (got <= 0) {
    close();
    return std::nullopt;
  }
  end_silence(now);
  bytes.resize(static_cast<std::size_t>(got));
  return bytes;
}

Duration AgentLink::own_pause(TimePoint now) const {
  return now - beat_ > kOwnPause ? now - beat_ : Duration(0);
}

void AgentLink::end_silence(TimePoint now) {
  const Duration ended = silence(now) - own_pause(now);
  if (ended >= longest_ || now - longest_at_ > kRemembered) {
    longest_ = ended;
    longest_at_ = now;
  }
  heard_ = now;
}

void AgentLink::hear(TimePoint now) {
  heard_ = longest_at_ = now;
  longest_ = Duration(0);
}

void AgentLink::read_some(TimePoint now) {
  if (const auto bytes = receive(now)) frames_.feed(*bytes);
}

std::string AgentLink::read_text(TimePoint now) { return receive(now).value_or(""); }

std::optional<Frame> AgentLink::try_next() {
  while (auto frame = frames_.try_next()) {
    if (frame->kind != FrameKind::kBeat) return frame;
  }
  return std::nullopt;
}

void AgentLink::close() {
  is_closed_ = true;
  in_.reset();
  out_.reset();
  queue_.clear();
  queued_ = written_ = 0;
}

void AgentLink::beat(TimePoint now) {
  heard_ = std::min(now, heard_ + own_pause(now));
  beat_ = now;
  if (now - sent_ >= kBeatPause && queue_.empty()) send(FrameKind::kBeat);
}

}  // namespace peal::launch::agents
