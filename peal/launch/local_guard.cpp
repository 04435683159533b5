#include "peal/launch/local_guard.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <utility>

#include "peal/base/error.h"
#include "peal/base/serialize.h"
#include "peal/launch/process_name.h"
#include "peal/launch/process_tree.h"
#include "peal/net/socket.h"
#include "peal/system/pipe.h"
#include "peal/system/private_folder.h"

namespace peal::launch {
namespace {

/// A pipe whose reader does not block.
Pipe make_guard_pipe() {
  Pipe pipe = make_pipe();
  ::fcntl(pipe.reader.get(), F_SETFL, O_NONBLOCK);
  return pipe;
}

/// The guard has another name than the job. `pkill peal` and `pkill -f train.py` mean the job, not
/// the process that cleans up after it.
constexpr const char* kGuardName = "rank-guard";

/// A rank that runs a function is a fork of the guard. So the rank takes the program's name again.
RankFunction with_name(const ProcessName& name, const RankFunction& function) {
  if (!function) return {};
  return [&name, &function](Rank rank) {
    name.restore();
    return function(rank);
  };
}

[[noreturn]] void live_as_guard(GuardDuty duty) {
  try {
    sigset_t all;
    sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    ::setpgid(0, 0);             // the launcher handles the signals of the terminal
    ::signal(SIGCHLD, SIG_DFL);  // if it were ignored, the kernel would drop how the ranks end
    const OrphanAdoption adoption;
    const ProcessName name;
    name.replace(kGuardName);
    const RankFunction function = std::exchange(duty.function, {});
    duty.function = with_name(name, function);
    GuardProcess(duty).run();
  } catch (const std::exception&) {
    ::_exit(1);  // the kernel kills the ranks, and the launcher reports that the guard is lost
  }
  ::_exit(0);
}

}  // namespace

LocalGuard::LocalGuard(GuardDuty duty) {
  net::SocketPair orders = net::make_socket_pair();
  Pipe events = make_guard_pipe();
  duty.orders = orders.b.get();
  duty.events = events.writer.get();
  pid_ = ::fork();
  if (pid_ < 0) throw system_error("cannot start the process that guards the ranks", errno);
  if (pid_ == 0) {
    orders.a.reset();  // otherwise the guard would not notice the end of the launcher
    events.reader.reset();
    live_as_guard(std::move(duty));
  }
  orders_ = std::move(orders.a);
  events_ = std::move(events.reader);
}

LocalGuard::~LocalGuard() {
  orders_.reset();
  int status = -1;  // unknown if the loss of the guard was noticed
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0) remove_folders_of_ended_processes(stop_flags_prefix(), folder_of_the_system());
}

std::optional<GuardEvent> LocalGuard::try_next() {
  GuardEvent event;
  const auto got = ::read(events_.get(), &event, sizeof event);
  if (got == 0) ended_ = true;
  if (got != sizeof event) return std::nullopt;
  return event;
}

void LocalGuard::pass_on(int signal, SignalOrigin origin) {
  order({GuardOrder::Kind::kPassOn, signal, origin});
}

void LocalGuard::stop(int signal, SignalOrigin origin) {
  order({GuardOrder::Kind::kStop, signal, origin});
}

void LocalGuard::ask_to_stop(int signal, SignalOrigin origin) {
  order({GuardOrder::Kind::kAsk, signal, origin});
}

void LocalGuard::warn() { order({.kind = GuardOrder::Kind::kWarn}); }

void LocalGuard::kill() { order({.kind = GuardOrder::Kind::kKill}); }

void LocalGuard::signal(Rank rank, int signal) {
  order({.kind = GuardOrder::Kind::kSignal, .signal = signal, .rank = rank});
}

void LocalGuard::start(const RankCommand& command, const StandardFiles& files) {
  const std::string bytes = encode(command);
  std::vector<int> descriptors = {files.out, files.err};
  if (files.in >= 0) descriptors.push_back(files.in);
  order({.kind = GuardOrder::Kind::kStart,
         .rank = command.rank,
         .size = static_cast<std::uint32_t>(bytes.size()),
         .descriptors = static_cast<std::uint32_t>(descriptors.size())});
  const Deadline deadline = Deadline::after(kOrderLimit);
  try {
    net::write_all(orders_.get(), bytes_of(bytes), deadline);
    net::send_fds(orders_.get(), descriptors, deadline);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kPeerLost) throw;  // `try_next` notices a guard that has ended
  }
}

/// A guard that has ended ignores orders; `try_next` notices its end.
void LocalGuard::order(const GuardOrder& order) {
  [[maybe_unused]] const auto written = ::write(orders_.get(), &order, sizeof order);
}

}  // namespace peal::launch
