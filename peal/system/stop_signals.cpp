#include "peal/system/stop_signals.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <mutex>

#include "peal/system/per_process.h"

namespace peal {
namespace {

constexpr std::array kStopSignals = {SIGINT, SIGTERM};

std::atomic<int> received = 0;  // a signal handler reaches nothing but globals
std::atomic<pid_t> noting_process = 0;

/// A forked child inherits the handler. It notes signals only if it makes an object of its own.
void note_signal(int number) {
  ::signal(number, SIG_DFL);  // the second signal has its usual effect
  if (::getpid() == noting_process.load(std::memory_order_relaxed)) {
    received.store(number, std::memory_order_relaxed);
  } else {
    ::raise(number);  // is delivered after this handler
  }
}

/// The handlers belong to the process, and so does the number of objects that need them.
struct Handlers {
  std::mutex mutex;
  int users = 0;
};

constinit PerProcess<Handlers> handlers;

bool is_handled_by(int number, void (*handler)(int)) {
  struct sigaction action = {};
  ::sigaction(number, nullptr, &action);
  return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == handler;
}

void note(int number) {
  if (!is_handled_by(number, SIG_DFL)) return;
  struct sigaction action = {};
  action.sa_handler = note_signal;
  action.sa_flags = SA_RESTART;
  ::sigaction(number, &action, nullptr);
}

}  // namespace

StopSignals::StopSignals() {
  Handlers& all = handlers.get();
  const std::lock_guard lock(all.mutex);
  if (all.users++ > 0) return;
  received.store(0, std::memory_order_relaxed);
  noting_process.store(::getpid(), std::memory_order_relaxed);
  for (const int number : kStopSignals) note(number);
}

StopSignals::~StopSignals() {
  if (!owner_.is_current()) return;
  Handlers& all = handlers.get();
  const std::lock_guard lock(all.mutex);
  if (--all.users > 0) return;
  for (const int number : kStopSignals) {
    if (is_handled_by(number, note_signal)) ::signal(number, SIG_DFL);
  }
}

int StopSignals::number() const { return received.load(std::memory_order_relaxed); }

}  // namespace peal
