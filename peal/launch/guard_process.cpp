#include "peal/launch/guard_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/config/config.h"
#include "peal/launch/process_tree.h"
#include "peal/launch/start_process.h"
#include "peal/net/socket.h"
#include "peal/system/memory_kills.h"
#include "peal/system/pipe.h"

namespace peal::launch {
namespace {

/// The pauses between two checks of remaining processes: after SIGTERM, and while they are being
/// killed.
constexpr Timeout kTellingPause{50};
constexpr Timeout kKillingPause{10};
/// How long to wait for a process that SIGKILL does not end, because it hangs in the kernel.
constexpr Timeout kGuardKillingLimit{5000};

/// Something that kills each process at its start must not keep the guard busy for ever.
constexpr int kMostRestarts = 3;

std::string flag_name(Rank rank) { return fmt::format("rank-{}", rank); }

/// If the process has written a detail, this replaces what the guard knows.
void take_detail(const Fd& pipe, EndDetail& detail) {
  EndDetail written;
  if (pipe && ::read(pipe.get(), &written, sizeof written) == sizeof written) detail = written;
}

}  // namespace

std::string stop_flags_prefix() { return fmt::format("peal-stop-{}.", ::geteuid()); }

GuardProcess::GuardProcess(const GuardDuty& duty) : duty_(duty), memory_kills_(memory_kills()) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  child_news_ = Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!child_news_) throw system_error("cannot make a signalfd", errno);
  null_ = Fd(::open("/dev/null", O_RDWR | O_CLOEXEC));
}

void GuardProcess::run() {
  start_ranks();
  while (true) {
    reap();
    if (children_ == Children::kNone && !waits_for_ranks()) break;
    const TimePoint now = Clock::now();
    clear_up(now);
    const Timeout limit = after_ends_.empty() ? kGuardKillingLimit : kAfterEndLimit;
    if (now > deadline_ && now - deadline_ > limit) break;
    wait_for_news();
    obey();
  }
  const auto survivors = static_cast<std::int32_t>(descendants_of(::getpid()).size());
  tell({.kind = GuardEvent::Kind::kGone, .value = survivors});
}

void GuardProcess::start_ranks() {
  for (std::size_t i = 0; i < duty_.ranks.size(); ++i) {
    const Placement placement{
        .in = i == 0 ? STDIN_FILENO : null_.get(),
        .out = duty_.outputs[2 * i],
        .err = duty_.outputs[2 * i + 1],
        .group = i == 0 ? duty_.terminal_group : 0,
        .mask = duty_.mask,
        .closed = duty_.outputs,
    };
    if (!start(duty_.ranks[i], placement, duty_.function)) {
      end_by(Clock::now());
      break;
    }
  }
  // The launcher must see the end of an output when the ranks have closed it.
  for (const int fd : duty_.outputs) ::close(fd);
}

/// Returns nothing if the file cannot be made, for example on a full disk. Then the rank gets only
/// signals.
std::optional<StopFlag> GuardProcess::make_stop_flag(RankCommand& command) {
  command.environment.erase(kStopFlagVariable);  // set by an outer launcher
  try {
    if (!stop_flags_) stop_flags_.emplace(stop_flags_prefix());
    const std::string path = stop_flags_->path() / flag_name(command.rank);
    StopFlag flag = StopFlag::create(path);
    if (request_) flag.set(*request_);
    command.environment[kStopFlagVariable] = path;
    return flag;
  } catch (const std::exception&) {  // also of std::filesystem
    remove_stop_flag(command.rank);
    return std::nullopt;
  }
}

/// Called after the end of each rank, because an elastic job may start any number of processes.
void GuardProcess::remove_stop_flag(Rank rank) const {
  if (stop_flags_) ::unlink((stop_flags_->path() / flag_name(rank)).c_str());
}

bool GuardProcess::start(RankCommand command, Placement placement, const RankFunction& function) {
  Started started{.stop_flag = make_stop_flag(command)};
  placement.closed.insert(placement.closed.end(),
                          {null_.get(), child_news_.get(), duty_.orders, duty_.events});
  const Rank rank = command.rank;
  const bool at_terminal = placement.group != 0;
  const int error = start_processes(std::move(command), std::move(placement), function, started);
  if (error != 0) {
    remove_stop_flag(rank);
    tell({.kind = GuardEvent::Kind::kNotStarted, .rank = rank, .value = error});
    return false;
  }
  started.target = at_terminal ? started.pid : -started.pid;
  ranks_[rank] = std::move(started);
  children_ = Children::kSome;
  return true;
}

/// Starts the command after the end of the rank, if it has one, and the rank. Returns 0 or errno.
int GuardProcess::start_processes(RankCommand command,
                                  Placement placement,
                                  const RankFunction& function,
                                  Started& started) {
  Fd detail_writer;
  if (!command.after_end.empty()) {
    if (const int error = start_after_end_of({command}, &started); error != 0) return error;
    std::optional<Pipe> pipe = try_make_pipe();
    if (!pipe) return errno;
    started.end_detail = std::move(pipe->reader);
    ::fcntl(started.end_detail.get(), F_SETFL, O_NONBLOCK);  // another process may have the writer
    detail_writer = std::move(pipe->writer);
    placement.inherited = detail_writer.get();
    command.environment[kEndPipeVariable] = fmt::format("{}", placement.inherited);
  }
  const StartedProcess process = start_process(command, placement, function);
  started.pid = process.pid;
  return process.error;
}

/// Returns 0 or errno. The command waits for the end of `running`; null: the rank ended.
int GuardProcess::start_after_end_of(AfterEnd after_end, Started* running) {
  std::optional<Pipe> pipe = try_make_pipe();
  if (!pipe) return errno;
  const StartedProcess process = start_after_end(after_end.rank, pipe->reader.get(), null_.get());
  if (process.error != 0) return process.error;
  tell({.kind = GuardEvent::Kind::kAfterEnd, .rank = after_end.rank.rank, .pid = process.pid});
  after_ends_[process.pid] = std::move(after_end);
  if (running != nullptr) {
    running->running = std::move(pipe->writer);
    running->after_end = process.pid;
  }
  return 0;
}

void GuardProcess::restart_after_end(pid_t killed, AfterEnd after_end) {
  if (++after_end.restarts > kMostRestarts) return;
  const auto rank = std::ranges::find_if(
      ranks_, [&](const auto& entry) { return entry.second.after_end == killed; });
  start_after_end_of(std::move(after_end), rank == ranks_.end() ? nullptr : &rank->second);
}

/// Throws if the launcher ends before the order is whole.
void GuardProcess::start_by_order(const GuardOrder& order) {
  const Deadline deadline = Deadline::after(kOrderLimit);
  std::string bytes(order.size, '\0');
  net::read_all(duty_.orders, std::as_writable_bytes(std::span(bytes)), deadline);
  const std::vector<Fd> files = net::receive_fds(duty_.orders, order.descriptors, deadline);
  const Placement placement{.in = files.size() > 2 ? files[2].get() : null_.get(),
                            .out = files[0].get(),
                            .err = files[1].get(),
                            .mask = duty_.mask};
  if (deadline_ == TimePoint::max()) start(decode_command(bytes), placement, {});
}

bool GuardProcess::waits_for_ranks() const {
  return duty_.starts == Starts::kAlsoLater && deadline_ == TimePoint::max();
}

/// If the launcher is gone, the write fails without an error: SIGPIPE is blocked.
void GuardProcess::tell(const GuardEvent& event) const {
  [[maybe_unused]] const auto written = ::write(duty_.events, &event, sizeof event);
}

void GuardProcess::reap() {
  int status = 0;
  pid_t pid = 0;
  while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0) {
    if (auto ended = after_ends_.extract(pid)) {
      if (WIFSIGNALED(status)) restart_after_end(pid, std::move(ended.mapped()));
      continue;
    }
    const auto rank =
        std::ranges::find_if(ranks_, [&](const auto& entry) { return entry.second.pid == pid; });
    if (rank == ranks_.end()) continue;  // a process that a rank has left
    remove_stop_flag(rank->first);
    GuardEvent end = describe_end(rank->first, pid, status);
    take_detail(rank->second.end_detail, end.detail);
    tell(end);
    // While other ranks run, leftover processes of this rank end with its process group.
    if (waits_for_ranks()) ::kill(-pid, SIGTERM);
    ranks_.erase(rank);
  }
  children_ = pid < 0 && errno == ECHILD ? Children::kNone : Children::kSome;
}

/// Each process that the kernel has killed explains the end of one rank, and none after the guard
/// has killed ranks itself. The ranks are in the guard's cgroup, unless they have left it.
GuardEvent GuardProcess::describe_end(Rank rank, pid_t pid, int status) {
  GuardEvent event{GuardEvent::Kind::kEnded, rank, pid, status};
  const bool is_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  if (!is_killed || !memory_kills_ || Clock::now() >= deadline_) return event;
  if (memory_kills().value_or(0) <= *memory_kills_) return event;
  ++*memory_kills_;
  event.detail.out_of_memory = 1;
  event.detail.memory_limit = memory_limit().value_or(Bytes(0)).value;
  return event;
}

std::vector<pid_t> GuardProcess::leftovers() const {
  std::vector<pid_t> found = descendants_of(::getpid());
  for (const auto& entry : after_ends_) {
    const pid_t pid = entry.first;
    const std::vector<pid_t> below = descendants_of(pid);
    std::erase_if(found,
                  [&](pid_t one) { return one == pid || std::ranges::count(below, one) > 0; });
  }
  return found;
}

void GuardProcess::end_by(TimePoint deadline) { deadline_ = std::min(deadline_, deadline); }

/// When the ranks have ended, asks their leftover processes to end; at the deadline, kills all.
/// Called again and again, since a process may have new children.
void GuardProcess::clear_up(TimePoint now) {
  if (ranks_.empty() && !waits_for_ranks()) tell_leftovers_to_end(now);
  if (now >= deadline_) {
    pass_on(SIGKILL, SignalOrigin::kProcess);
    for (const pid_t pid : leftovers()) ::kill(pid, SIGKILL);
  }
}

void GuardProcess::tell_leftovers_to_end(TimePoint now) {
  end_by(now + duty_.grace);
  for (const pid_t pid : leftovers()) {
    if (!signalled_.insert(pid).second) continue;
    ::kill(pid, SIGTERM);
    ::kill(pid, SIGCONT);
  }
}

Timeout GuardProcess::longest_wait(TimePoint now) const {
  if (now >= deadline_) return kKillingPause;
  if (ranks_.empty() && !waits_for_ranks()) return kTellingPause;
  return std::min<Timeout>(Deadline(deadline_).left(now), std::chrono::hours(1));
}

void GuardProcess::wait_for_news() const {
  const int orders = launcher_ == Launcher::kAlive ? duty_.orders : -1;
  std::array<pollfd, 2> sources = {pollfd{child_news_.get(), POLLIN, 0}, pollfd{orders, POLLIN, 0}};
  ::poll(sources.data(), sources.size(), static_cast<int>(longest_wait(Clock::now()).count()));
  signalfd_siginfo ignored{};
  while (::read(child_news_.get(), &ignored, sizeof ignored) > 0) {
  }
}

void GuardProcess::obey() {
  while (launcher_ == Launcher::kAlive) {
    GuardOrder order;
    const auto got = ::read(duty_.orders, &order, sizeof order);
    if (got < 0) return;  // no order is waiting: the pipe does not block
    if (got == 0) {
      launcher_ = Launcher::kLost;
      order = {.kind = GuardOrder::Kind::kKill};
    }
    try {
      follow(order);
    } catch (const Error&) {  // a part of an order is missing
      end_by(Clock::now());
      return;
    }
  }
}

void GuardProcess::follow(const GuardOrder& order) {
  switch (order.kind) {
    case GuardOrder::Kind::kPassOn:
      pass_on(order.signal, order.origin);
      return;
    case GuardOrder::Kind::kStop:
    case GuardOrder::Kind::kAsk:
      stop(order);
      return;
    case GuardOrder::Kind::kWarn:
      set_stop_flags(0);
      return;
    case GuardOrder::Kind::kKill:
      end_by(Clock::now());
      return;
    case GuardOrder::Kind::kSignal:
      signal_one(order.rank, order.signal);
      return;
    case GuardOrder::Kind::kStart:
      start_by_order(order);
      return;
  }
}

void GuardProcess::stop(const GuardOrder& order) {
  tell_stopped();  // before SIGCONT resumes the stopped ranks
  const bool asks = order.kind == GuardOrder::Kind::kAsk;
  if (asks) set_stop_flags(order.signal);
  for (const auto& [rank, started] : ranks_) {
    const bool at_terminal = started.target > 0;
    if (at_terminal && order.origin == SignalOrigin::kTerminal) continue;
    // SIGTERM would also end the children of the rank, such as the workers of a data loader.
    const bool looks_at_flag = started.stop_flag && started.stop_flag->is_watched();
    if (!asks || order.signal != SIGTERM || !looks_at_flag) signal_one(rank, order.signal);
  }
  pass_on(SIGCONT, SignalOrigin::kProcess);  // a stopped process cannot end
  end_by(Clock::now() + duty_.grace);
}

void GuardProcess::set_stop_flags(int signal) {
  request_ = signal;
  for (const auto& [rank, started] : ranks_) {
    if (started.stop_flag) started.stop_flag->set(signal);
  }
}

/// Reports stopped ranks. Checks only the process that the guard has started. If this is a shell,
/// the program that the shell runs may be stopped without a report.
void GuardProcess::tell_stopped() const {
  for (const auto& [rank, started] : ranks_) {
    siginfo_t found{};
    const auto pid = static_cast<id_t>(started.pid);
    const bool is_known = ::waitid(P_PID, pid, &found, WSTOPPED | WNOHANG | WNOWAIT) == 0;
    if (!is_known || found.si_pid == 0) continue;
    tell({.kind = GuardEvent::Kind::kStopped, .rank = rank, .pid = started.pid});
  }
}

void GuardProcess::pass_on(int signal, SignalOrigin origin) const {
  for (const auto& [rank, started] : ranks_) {
    const bool at_terminal = started.target > 0;
    if (at_terminal && origin == SignalOrigin::kTerminal) continue;
    signal_one(rank, signal);
  }
}

void GuardProcess::signal_one(Rank rank, int signal) const {
  const auto found = ranks_.find(rank);
  if (found == ranks_.end()) return;
  const bool left_its_group = ::kill(found->second.target, signal) != 0;
  if (left_its_group) ::kill(found->second.pid, signal);
}

}  // namespace peal::launch
