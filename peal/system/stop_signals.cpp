#include "peal/system/stop_signals.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "peal/system/per_process.h"

namespace peal {
namespace {

// A signal handler reaches nothing but globals.
static_assert(std::atomic<TimePoint>::is_always_lock_free);
std::atomic<int> received = 0;
std::atomic<TimePoint> received_at{};
std::atomic<pid_t> noting_process = 0;
std::atomic<const char*> words_at_ctrl_c = nullptr;

/// The signal that was noted. `now`: its time, if another thread is about to store the time.
StopSignal noted_signal(TimePoint now) {
  const TimePoint at = received_at.load(std::memory_order_relaxed);
  return {.number = received.load(std::memory_order_relaxed), .at = at == TimePoint{} ? now : at};
}

void write_words() {
  const char* const words = words_at_ctrl_c.load(std::memory_order_relaxed);
  if (words == nullptr) return;
  const int kept = errno;
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, words, std::strlen(words));
  errno = kept;
}

/// A forked child inherits the handler. It notes signals only if it makes an object of its own.
void note_signal(int number, siginfo_t* info, void* /*context*/) {
  if (::getpid() == noting_process.load(std::memory_order_relaxed)) {
    const TimePoint now = Clock::now();  // clock_gettime(2), which a handler may call
    int none = 0;
    if (received.compare_exchange_strong(none, number, std::memory_order_relaxed)) {
      received_at.store(now, std::memory_order_relaxed);
      if (number == SIGINT) write_words();
      return;
    }
    const bool is_of_terminal = info->si_code == SI_KERNEL;
    const StopSignal next = {.number = number, .is_of_terminal = is_of_terminal, .at = now};
    if (number == SIGHUP || is_repeated(noted_signal(now), next)) return;
  }
  ::signal(number, SIG_DFL);
  ::raise(number);  // is delivered after this handler
}

/// The handlers belong to the process, and so does the number of objects that need them.
struct Handlers {
  std::mutex mutex;
  int users = 0;
};

constinit PerProcess<Handlers> handlers;

struct sigaction action_of(int number) {
  struct sigaction action = {};
  ::sigaction(number, nullptr, &action);
  return action;
}

void note(int number) {
  const struct sigaction before = action_of(number);
  if ((before.sa_flags & SA_SIGINFO) != 0 || before.sa_handler != SIG_DFL) return;
  struct sigaction action = {};
  action.sa_sigaction = note_signal;
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  ::sigaction(number, &action, nullptr);
}

bool is_noted(int number) {
  const struct sigaction action = action_of(number);
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == note_signal;
}

}  // namespace

StopSignals::StopSignals(std::initializer_list<int> signals, const char* at_ctrl_c) {
  Handlers& all = handlers.get();
  const std::lock_guard lock(all.mutex);
  if (all.users++ > 0) return;
  received.store(0, std::memory_order_relaxed);
  received_at.store({}, std::memory_order_relaxed);
  words_at_ctrl_c.store(at_ctrl_c, std::memory_order_relaxed);
  noting_process.store(::getpid(), std::memory_order_relaxed);
  for (const int number : signals) note(number);
}

StopSignals::~StopSignals() {
  if (!owner_.is_current()) return;
  Handlers& all = handlers.get();
  const std::lock_guard lock(all.mutex);
  if (--all.users > 0) return;
  for (int number = 1; number < NSIG; ++number) {
    if (is_noted(number)) ::signal(number, SIG_DFL);
  }
}

int StopSignals::number() const { return received.load(std::memory_order_relaxed); }

}  // namespace peal
