#include "peal/launch/agents/agent_guard.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include "peal/base/error.h"

namespace peal::launch::agents {
namespace {

/// How long the agents may take to kill their processes at the end.
constexpr Timeout kToKill{6000};

/// A copy that does not block.
Fd copy_of(int fd) {
  Fd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!copy) throw system_error("cannot copy a descriptor for the output of a rank", errno);
  ::fcntl(copy.get(), F_SETFL, O_NONBLOCK);
  return copy;
}

}  // namespace

AgentGuard::AgentGuard(Agents& agents, Starts starts) : agents_(agents), starts_(starts) {}

AgentGuard::~AgentGuard() {
  kill();
  const Deadline deadline = Deadline::after(kToKill);
  while (stage_ != Stage::kGone && !deadline.passed()) {
    pollfd entry{agents_.readable(), POLLIN, 0};
    ::poll(&entry, 1, static_cast<int>(deadline.left().count()));
    advance();
  }
}

std::optional<GuardEvent> AgentGuard::try_next() {
  if (events_.empty()) advance();
  if (events_.empty()) return std::nullopt;
  const GuardEvent first = events_.front();
  events_.pop_front();
  return first;
}

void AgentGuard::advance() {
  agents_.advance();
  while (const auto news = agents_.try_next_news()) {
    if (news->state != AgentHost::State::kReady) lose(news->host);
  }
  for (int host = 0; host < agents_.count(); ++host) {
    if (!gone_.contains(host)) take_frames(host);
  }
  end_if_done();
}

void AgentGuard::take_frames(int host) {
  if (unwritten_.contains(host)) {
    if (!pass_output(host)) return;
    agents_.pause(host, -1);
  }
  try {
    while (const auto frame = agents_.host(host).link().try_next()) {
      handle(host, *frame);
      if (unwritten_.contains(host)) return;
    }
  } catch (const Error&) {  // bytes that no agent sends
    agents_.host(host).link().close();
  }
}

void AgentGuard::handle(int host, const Frame& frame) {
  switch (frame.kind) {
    case FrameKind::kOutput: {
      const auto [place, is_new] = unwritten_.emplace(host, decode_output(frame.payload));
      if (!pass_output(host)) {
        const Process& process = processes_.at(place->second.rank);
        const bool is_out = place->second.channel == Channel::kOut;
        agents_.pause(host, (is_out ? process.out : process.err).get());
      }
      return;
    }
    case FrameKind::kEvent:
      return take_event(host, decode_event(frame.payload));
    case FrameKind::kEnding:
      return agents_.host(host).note_ending(frame.payload);
    case FrameKind::kRecord:
    case FrameKind::kCollected:
    case FrameKind::kBegin:
    case FrameKind::kStart:
    case FrameKind::kSignal:
    case FrameKind::kPassOn:
    case FrameKind::kStop:
    case FrameKind::kKill:
    case FrameKind::kCollect:
    case FrameKind::kReady:
    case FrameKind::kBeat:
      break;
  }
  throw Error(ErrorKind::kMismatch, "a message that no agent sends now");
}

bool AgentGuard::pass_output(int host) {
  Output& output = unwritten_.at(host);
  const auto found = processes_.find(output.rank);
  const bool is_known = found != processes_.end() && found->second.host == host;
  Fd nowhere;
  Fd& fd = !is_known                         ? nowhere
           : output.channel == Channel::kOut ? found->second.out
                                             : found->second.err;
  if (output.bytes.empty()) fd.reset();
  std::string_view rest = output.bytes;
  while (fd && !rest.empty()) {
    const auto wrote = ::write(fd.get(), rest.data(), rest.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && errno == EAGAIN) break;
    if (wrote < 0) {  // the launcher reads no more
      fd.reset();
      break;
    }
    rest.remove_prefix(static_cast<std::size_t>(wrote));
  }
  if (fd && !rest.empty()) {
    output.bytes.erase(0, output.bytes.size() - rest.size());
    return false;
  }
  unwritten_.erase(host);
  return true;
}

void AgentGuard::take_event(int host, const GuardEvent& event) {
  if (event.kind == GuardEvent::Kind::kGone) {
    survivors_ += event.value;
    gone_.insert(host);
    for (auto& [rank, process] : processes_) {
      if (process.host != host) continue;
      process.out.reset();
      process.err.reset();
    }
    return;
  }
  const auto found = processes_.find(event.rank);
  if (found == processes_.end() || found->second.host != host) return;
  if (event.kind == GuardEvent::Kind::kNotStarted) {
    found->second.out.reset();
    found->second.err.reset();
  }
  if (event.kind != GuardEvent::Kind::kStopped) found->second.is_running = false;
  events_.push_back(event);
}

void AgentGuard::lose(int host) {
  gone_.insert(host);
  unwritten_.erase(host);
  agents_.pause(host, -1);
  for (auto& [rank, process] : processes_) {
    if (process.host != host) continue;
    process.out.reset();
    process.err.reset();
    if (std::exchange(process.is_running, false)) {
      events_.push_back({.kind = GuardEvent::Kind::kLost, .rank = rank});
    }
  }
}

void AgentGuard::end_if_done() {
  const bool is_any_running =
      std::ranges::any_of(processes_, [](const auto& entry) { return entry.second.is_running; });
  if (stage_ == Stage::kRunning && starts_ == Starts::kAtOnce && !is_any_running) {
    stop(SIGTERM, SignalOrigin::kProcess);
  }
  if (stage_ == Stage::kStopping && std::ssize(gone_) == agents_.count()) {
    stage_ = Stage::kGone;
    events_.push_back({.kind = GuardEvent::Kind::kGone, .value = survivors_});
  }
}

void AgentGuard::send_to_all(FrameKind kind, int signal) {
  for (int host = 0; host < agents_.count(); ++host) {
    if (gone_.contains(host)) continue;
    agents_.host(host).link().send(kind, encode(SignalOrder{.signal = signal}));
  }
}

void AgentGuard::pass_on(int signal, SignalOrigin /*origin*/) {
  send_to_all(FrameKind::kPassOn, signal);
}

void AgentGuard::stop(int signal, SignalOrigin /*origin*/) {
  if (stage_ == Stage::kRunning) stage_ = Stage::kStopping;
  send_to_all(FrameKind::kStop, signal);
}

void AgentGuard::kill() {
  stop(SIGTERM, SignalOrigin::kProcess);
  send_to_all(FrameKind::kKill, SIGKILL);
}

void AgentGuard::start(const RankCommand& command, int out, int err) {
  int host = 0;
  while (host < agents_.count() && agents_.host(host).name() != command.host) ++host;
  if (host == agents_.count() || gone_.contains(host)) {
    processes_[command.rank] = {.host = host, .is_running = false};
    events_.push_back({.kind = GuardEvent::Kind::kLost, .rank = command.rank});
    return;
  }
  processes_[command.rank] = {.host = host, .out = copy_of(out), .err = copy_of(err)};
  agents_.host(host).link().send(FrameKind::kStart, encode(command));
}

void AgentGuard::signal(Rank rank, int signal) {
  const auto found = processes_.find(rank);
  if (found == processes_.end() || !found->second.is_running) return;
  agents_.host(found->second.host)
      .link()
      .send(FrameKind::kSignal, encode(SignalOrder{.signal = signal, .rank = rank}));
}

std::string AgentGuard::why_lost(Rank rank) const {
  const auto found = processes_.find(rank);
  if (found == processes_.end() || found->second.host >= agents_.count()) return "";
  return agents_.host(found->second.host).problem();
}

}  // namespace peal::launch::agents
