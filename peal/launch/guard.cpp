#include "peal/launch/guard.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "peal/base/error.h"

namespace peal::launch {
namespace {

struct Pipe {
  Fd reader;  // does not block
  Fd writer;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw system_error("cannot make a pipe", errno);
  Pipe pipe{Fd(ends[0]), Fd(ends[1])};
  ::fcntl(pipe.reader.get(), F_SETFL, O_NONBLOCK);
  return pipe;
}

/// Field `number` of /proc/self/stat, counted from 1 as proc(5) does; past the name, the second.
unsigned long stat_field(int number) {
  std::ifstream file("/proc/self/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(text.substr(name_end + 1));
  std::string field;
  for (int i = 3; i <= number; ++i) fields >> field;
  return std::strtoul(field.c_str(), nullptr, 10);
}

/// Who runs `pkill peal` or `pkill -f train.py` means the job, not the process that clears up after
/// it: so the guard goes by another name, and its command line says neither.
void take_name(const char* name) {
  ::prctl(PR_SET_NAME, name);
  const unsigned long begin = stat_field(48);  // arg_start
  const unsigned long end = stat_field(49);    // arg_end
  if (begin == 0 || end <= begin) return;
  char* const words = reinterpret_cast<char*>(begin);
  std::memset(words, 0, end - begin);
  std::strncpy(words, name, end - begin - 1);
}

[[noreturn]] void live_as_guard(const GuardDuty& duty) {
  try {
    sigset_t all;
    sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    ::setpgid(0, 0);  // what the terminal sends is the launcher's to handle
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    take_name("rank-guard");
    GuardProcess(duty).run();
  } catch (const std::exception&) {
    ::_exit(1);  // the kernel kills the ranks, and the launcher says that the guard is lost
  }
  ::_exit(0);
}

}  // namespace

Guard::Guard(GuardDuty duty) {
  Pipe orders = make_pipe();
  Pipe events = make_pipe();
  duty.orders = orders.reader.get();
  duty.events = events.writer.get();
  pid_ = ::fork();
  if (pid_ < 0) throw system_error("cannot start the process that guards the ranks", errno);
  if (pid_ == 0) {
    orders.writer.reset();  // else the guard would not see that the launcher is gone
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

/// A guard that has ended follows no orders, and `try_next` says so.
void Guard::order(const GuardOrder& order) {
  [[maybe_unused]] const auto written = ::write(orders_.get(), &order, sizeof order);
}

}  // namespace peal::launch
