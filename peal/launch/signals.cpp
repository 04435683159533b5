#include "peal/launch/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "peal/base/error.h"

namespace peal::launch {
namespace {

constexpr int kPassedOn[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

/// Raised by a write that fails: to a closed pipe, and beyond the limit of file sizes.
constexpr int kOfWrites[] = {SIGPIPE, SIGXFSZ};

bool is_ignored(int signal) {
  struct sigaction action {};
  ::sigaction(signal, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

}  // namespace

bool ends_a_launch(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

SignalReader::SignalReader() {
  sigset_t read;
  sigemptyset(&read);
  for (const int signal : kPassedOn) {
    if (!is_ignored(signal)) sigaddset(&read, signal);
  }
  sigset_t blocked = read;
  for (const int signal : kOfWrites) sigaddset(&blocked, signal);
  fd_ = Fd(::signalfd(-1, &read, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_) throw system_error("cannot read signals", errno);
  ::sigprocmask(SIG_BLOCK, &blocked, &previous_);
}

SignalReader::~SignalReader() {
  // The failed write was reported by its error code. The signal must not end the process now.
  sigset_t pending;
  sigemptyset(&pending);
  for (const int signal : kOfWrites) {
    if (sigismember(&previous_, signal) == 0) sigaddset(&pending, signal);
  }
  const timespec none{};
  while (::sigtimedwait(&pending, nullptr, &none) > 0) {
  }
  ::sigprocmask(SIG_SETMASK, &previous_, nullptr);
}

std::optional<SignalReader::Taken> SignalReader::try_next() {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  const bool terminal = info.ssi_code == SI_KERNEL;
  return Taken{static_cast<int>(info.ssi_signo),
               terminal ? SignalOrigin::kTerminal : SignalOrigin::kProcess};
}

int SignalReader::take_end() {
  int first = 0;
  bool stops = false;
  while (const auto taken = try_next()) {
    if (taken->signal == SIGTSTP) stops = true;
    if (first == 0 && ends_a_launch(taken->signal)) first = taken->signal;
  }
  if (stops && first == 0) ::raise(SIGSTOP);
  return first;
}

}  // namespace peal::launch
