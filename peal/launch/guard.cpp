#include "peal/launch/guard.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "peal/base/error.h"
#include "peal/launch/process_tree.h"
#include "peal/system/pipe.h"

namespace peal::launch {
namespace {

/// A pipe whose reader does not block.
Pipe make_guard_pipe() {
  Pipe pipe = make_pipe();
  ::fcntl(pipe.reader.get(), F_SETFL, O_NONBLOCK);
  return pipe;
}

/// Renames the guard. `pkill peal` and `pkill -f train.py` mean the job, not the process that
/// cleans up after it. So neither the guard's name nor its command line, which begins at glibc's
/// program_invocation_name, may match.
void take_name(const std::string& name) {
  ::prctl(PR_SET_NAME, name.c_str());
  std::ifstream file("/proc/self/cmdline");
  const std::string words((std::istreambuf_iterator<char>(file)), {});
  char* const begin = ::program_invocation_name;
  if (words.c_str() != std::string_view(begin) || words.size() <= name.size()) return;
  std::fill(std::copy(name.begin(), name.end(), begin), begin + words.size(), '\0');
}

[[noreturn]] void live_as_guard(const GuardDuty& duty) {
  try {
    sigset_t all;
    sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    ::setpgid(0, 0);  // the launcher handles the signals of the terminal
    const OrphanAdoption adoption;
    take_name("rank-guard");
    GuardProcess(duty).run();
  } catch (const std::exception&) {
    ::_exit(1);  // the kernel kills the ranks, and the launcher reports that the guard is lost
  }
  ::_exit(0);
}

}  // namespace

Guard::Guard(GuardDuty duty) {
  Pipe orders = make_guard_pipe();
  Pipe events = make_guard_pipe();
  duty.orders = orders.reader.get();
  duty.events = events.writer.get();
  pid_ = ::fork();
  if (pid_ < 0) throw system_error("cannot start the process that guards the ranks", errno);
  if (pid_ == 0) {
    orders.writer.reset();  // otherwise the guard would not notice the end of the launcher
    events.reader.reset();
    live_as_guard(duty);
  }
  orders_ = std::move(orders.writer);
  events_ = std::move(events.reader);
}

Guard::~Guard() {
  orders_.reset();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::optional<GuardEvent> Guard::try_next() {
  GuardEvent event;
  const auto got = ::read(events_.get(), &event, sizeof event);
  if (got == 0) ended_ = true;
  if (got != sizeof event) return std::nullopt;
  return event;
}

void Guard::pass_on(int signal, SignalOrigin origin) {
  order({GuardOrder::Kind::kPassOn, signal, origin});
}

void Guard::stop(int signal, SignalOrigin origin) {
  order({GuardOrder::Kind::kStop, signal, origin});
}

void Guard::kill() { order({.kind = GuardOrder::Kind::kKill}); }

/// A guard that has ended ignores orders; `try_next` notices its end.
void Guard::order(const GuardOrder& order) {
  [[maybe_unused]] const auto written = ::write(orders_.get(), &order, sizeof order);
}

}  // namespace peal::launch
