#include "peal/launch/agents/agent_guard.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "peal/base/error.h"

namespace peal::launch::agents {
namespace {

/// How long the agents may take to kill their processes at the end.
constexpr Timeout kToKill{6000};
/// More output of a host is dropped, if the reader is stuck while the job ends.
constexpr std::size_t kMostUnwritten = 16 << 20;

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
  agents_.watch_input(-1);
  input_.reset();  // the next attempt may need the rest
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
    news_.push_back(*news);
    if (news->state == AgentHost::State::kReady) continue;
    unwritten_.erase(news->host);
    agents_.pause(news->host, -1);
    take_leave(news->host, agents_.host(news->host).problem());
  }
  for (int host = 0; host < agents_.count(); ++host) {
    if (unwritten_.contains(host)) write_output(host);
    if (!gone_.contains(host)) take_frames(host);
  }
  send_input();
  end_if_done();
}

void AgentGuard::take_frames(int host) {
  try {
    while (!is_paused(host)) {
      const auto frame = agents_.host(host).link().try_next();
      if (!frame) break;
      handle(host, *frame);
    }
  } catch (const Error&) {  // bytes that no agent sends
    agents_.host(host).disconnect();
    agents_.pause(host, -1);
  }
}

void AgentGuard::handle(int host, const Frame& frame) {
  switch (frame.kind) {
    case FrameKind::kOutput:
      return take_output(host, decode_output(frame.payload));
    case FrameKind::kEvent:
      return take_event(host, decode_event(frame.payload));
    case FrameKind::kEnding:
      return agents_.host(host).note_ending(frame.payload);
    case FrameKind::kInputTaken:
      if (input_) input_->take_answer();
      return;
    case FrameKind::kInputClosed:
      if (input_) input_->end();
      return;
    case FrameKind::kRecord:
    case FrameKind::kCollected:
    case FrameKind::kBegin:
    case FrameKind::kStart:
    case FrameKind::kSignal:
    case FrameKind::kPassOn:
    case FrameKind::kStop:
    case FrameKind::kAsk:
    case FrameKind::kWarn:
    case FrameKind::kKill:
    case FrameKind::kCollect:
    case FrameKind::kFile:
    case FrameKind::kFilesEnd:
    case FrameKind::kForget:
    case FrameKind::kStartReader:
    case FrameKind::kInput:
    case FrameKind::kReady:
    case FrameKind::kBeat:
      break;
  }
  throw Error(ErrorKind::kMismatch, "a message that no agent sends now");
}

/// While the job runs, a host waits until its output is written. When the launcher ends the job,
/// the events behind the output must arrive even if the reader of the output is stuck.
bool AgentGuard::is_paused(int host) const {
  return unwritten_.contains(host) && stage_ == Stage::kRunning;
}

void AgentGuard::take_output(int host, Output output) {
  Unwritten& unwritten = unwritten_[host];
  if (unwritten.bytes > kMostUnwritten) return;  // the reader is stuck, and the job is ending
  unwritten.bytes += output.bytes.size();
  unwritten.queue.push_back(std::move(output));
  write_output(host);
}

bool AgentGuard::write_output(int host) {
  Unwritten& unwritten = unwritten_.at(host);
  while (!unwritten.queue.empty()) {
    Output& first = unwritten.queue.front();
    const std::size_t before = first.bytes.size();
    const bool is_written = write(first, host);
    unwritten.bytes -= before - (is_written ? 0 : first.bytes.size());
    if (!is_written) {
      pause_if_full(host);
      return false;
    }
    unwritten.queue.pop_front();
  }
  unwritten_.erase(host);
  agents_.pause(host, -1);
  if (gone_.contains(host)) close_outputs(host);
  return true;
}

/// Waits for the pipe of the first output.
void AgentGuard::pause_if_full(int host) {
  const Output& first = unwritten_.at(host).queue.front();
  const Process& process = processes_.at(first.rank);
  const int pipe = (first.channel == Channel::kOut ? process.out : process.err).get();
  agents_.pause(host, is_paused(host) ? pipe : -1);
}

bool AgentGuard::write(Output& output, int host) {
  const auto found = processes_.find(output.rank);
  if (found == processes_.end() || found->second.host != host) return true;
  Fd& fd = output.channel == Channel::kOut ? found->second.out : found->second.err;
  if (output.bytes.empty()) fd.reset();
  std::size_t written = 0;
  while (fd && written < output.bytes.size()) {
    const auto wrote =
        ::write(fd.get(), output.bytes.data() + written, output.bytes.size() - written);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && errno == EAGAIN) {
      output.bytes.erase(0, written);
      return false;
    }
    if (wrote < 0) fd.reset();  // the launcher reads no more
    if (wrote > 0) written += static_cast<std::size_t>(wrote);
  }
  return true;
}

void AgentGuard::send_input() {
  if (!input_) return;
  const Process& reader = processes_.at(input_rank_);
  if (!reader.is_running) input_->end();
  if (const auto bytes = input_->try_next()) {
    agents_.host(reader.host).link().send(FrameKind::kInput, *bytes);
  }
  agents_.watch_input(input_->waits_for());
}

void AgentGuard::take_event(int host, const GuardEvent& event) {
  if (event.kind == GuardEvent::Kind::kGone) {
    survivors_ += event.value;
    return lose_guard(host);
  }
  const auto found = processes_.find(event.rank);
  if (found == processes_.end() || found->second.host != host || !found->second.is_running) return;
  if (event.kind == GuardEvent::Kind::kNotStarted) {
    found->second.out.reset();
    found->second.err.reset();
  }
  if (event.kind != GuardEvent::Kind::kStopped) {
    found->second.is_running = false;
    agents_.host(host).note_ranks(-1);
  }
  events_.push_back(event);
}

/// Its agent cannot start further processes.
void AgentGuard::lose_guard(int host) {
  const std::string why = "the process that guards its ranks was killed";
  take_leave(host, why);
  if (starts_ == Starts::kAlsoLater && stage_ == Stage::kRunning) agents_.leave(host, why);
}

void AgentGuard::take_leave(int host, const std::string& why) {
  gone_.insert(host);
  for (auto& [rank, process] : processes_) {
    if (process.host != host || !process.is_running) continue;
    process.is_running = false;
    process.why_lost = why;
    events_.push_back({.kind = GuardEvent::Kind::kLost, .rank = rank});
  }
  if (!unwritten_.contains(host)) close_outputs(host);
}

void AgentGuard::close_outputs(int host) {
  for (auto& [rank, process] : processes_) {
    if (process.host != host) continue;
    process.out.reset();
    process.err.reset();
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

/// A host that has not answered yet has no processes, and its answer would come too late.
void AgentGuard::stop_by(FrameKind kind, int signal) {
  if (stage_ == Stage::kRunning) stage_ = Stage::kStopping;
  for (int host = 0; host < agents_.count(); ++host) {
    if (!agents_.host(host).is_ready()) agents_.leave(host, "the job ends");
  }
  for (const auto& [host, unwritten] : unwritten_) agents_.pause(host, -1);
  send_to_all(kind, signal);
}

void AgentGuard::stop(int signal, SignalOrigin /*origin*/) { stop_by(FrameKind::kStop, signal); }

void AgentGuard::ask_to_stop(int signal, SignalOrigin /*origin*/) {
  stop_by(FrameKind::kAsk, signal);
}

/// A host that has not answered yet must get kBegin first. It is warned before its first rank.
void AgentGuard::warn() {
  has_warned_ = true;
  for (int host = 0; host < agents_.count(); ++host) {
    if (!agents_.host(host).is_ready() || gone_.contains(host)) continue;
    agents_.host(host).link().send(FrameKind::kWarn);
  }
}

void AgentGuard::kill() {
  stop(SIGTERM, SignalOrigin::kProcess);
  send_to_all(FrameKind::kKill, SIGKILL);
}

std::optional<HostNews> AgentGuard::try_next_news() {
  if (news_.empty()) return std::nullopt;
  const HostNews first = news_.front();
  news_.pop_front();
  return first;
}

/// -1: no host has this name.
int AgentGuard::number_of(const std::string& host) const {
  int number = agents_.count() - 1;
  while (number >= 0 && agents_.host(number).name() != host) --number;
  return number;
}

void AgentGuard::start(const RankCommand& command, const StandardFiles& files) {
  const int host = number_of(command.host);
  if (host < 0 || gone_.contains(host)) {
    const bool is_known = host >= 0;
    processes_[command.rank] = {.host = host,
                                .is_running = false,
                                .why_lost = is_known ? agents_.host(host).problem() : "unknown"};
    events_.push_back({.kind = GuardEvent::Kind::kLost, .rank = command.rank});
    return;
  }
  processes_[command.rank] = {.host = host, .out = copy_of(files.out), .err = copy_of(files.err)};
  const bool reads = files.in >= 0;
  if (reads) {
    input_.emplace(files.in);
    input_rank_ = command.rank;
  }
  AgentHost& on_host = agents_.host(host);
  on_host.note_ranks(1);
  if (has_warned_) on_host.link().send(FrameKind::kWarn);
  on_host.link().send(reads ? FrameKind::kStartReader : FrameKind::kStart, encode(command));
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
  return found == processes_.end() ? "" : found->second.why_lost;
}

}  // namespace peal::launch::agents
