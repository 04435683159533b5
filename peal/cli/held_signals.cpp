#include "peal/cli/held_signals.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string_view>

#include "peal/system/stop_signals.h"

namespace peal::cli {
namespace {

constexpr std::string_view kSentence =
    "peal: the job is being started; peal submit ends after that (another Ctrl-C ends it at once, "
    "and the job may run nevertheless)\n";

// A signal handler reaches nothing but globals.
static_assert(std::atomic<TimePoint>::is_always_lock_free);
std::atomic<int> held_number = 0;
std::atomic<TimePoint> held_at{};

/// The other signals are blocked in here.
void hold(int number, siginfo_t* info, void* /*context*/) {
  const TimePoint now = Clock::now();  // clock_gettime(2), which a handler may call
  if (held_number == 0) {
    held_number = number;
    held_at = now;
    const int kept = errno;
    if (number == SIGINT && ::write(STDERR_FILENO, kSentence.data(), kSentence.size()) < 0) {
      // Nobody reads it.
    }
    errno = kept;
    return;
  }
  const StopSignal first = {.number = held_number, .is_of_terminal = false, .at = held_at};
  const StopSignal next = {
      .number = number, .is_of_terminal = info->si_code == SI_KERNEL, .at = now};
  // A terminal that is closed and its shell both send SIGHUP.
  if (number == SIGHUP || is_repeated(first, next)) return;
  ::signal(number, SIG_DFL);
  ::raise(number);  // is delivered after this handler
}

}  // namespace

HeldSignals::HeldSignals() {
  held_number = 0;
  struct sigaction action {};
  action.sa_sigaction = hold;
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  for (const int number : kHeld) sigaddset(&action.sa_mask, number);
  for (std::size_t i = 0; i < kHeld.size(); ++i) {
    ::sigaction(kHeld[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) ::sigaction(kHeld[i], &action, nullptr);
  }
}

HeldSignals::~HeldSignals() {
  for (std::size_t i = 0; i < kHeld.size(); ++i) ::sigaction(kHeld[i], &before_[i], nullptr);
}

int HeldSignals::noted() { return held_number; }

}  // namespace peal::cli
