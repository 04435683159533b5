#include "peal/train/trainer/stop_signals.h"

#include <signal.h>

#include <atomic>
#include <mutex>

namespace peal::train {
namespace {

std::atomic<int> received = 0;  // a signal handler reaches nothing but globals

void note_signal(int number) { received.store(number, std::memory_order_relaxed); }

/// The handlers belong to the process, and so does the number of objects that need them.
struct Handlers {
  std::mutex mutex;
  int users = 0;
  struct sigaction interrupt_before = {};
  struct sigaction terminate_before = {};
};

Handlers& handlers() {
  static Handlers all;
  return all;
}

void handle(int number, struct sigaction& before) {
  struct sigaction action = {};
  action.sa_handler = note_signal;
  action.sa_flags = SA_RESTART | SA_RESETHAND;  // the second signal has its usual effect
  ::sigaction(number, &action, &before);
}

}  // namespace

StopSignals::StopSignals() {
  Handlers& all = handlers();
  const std::lock_guard lock(all.mutex);
  if (all.users++ > 0) return;
  received.store(0, std::memory_order_relaxed);
  handle(SIGINT, all.interrupt_before);
  handle(SIGTERM, all.terminate_before);
}

StopSignals::~StopSignals() {
  Handlers& all = handlers();
  const std::lock_guard lock(all.mutex);
  if (--all.users > 0) return;
  ::sigaction(SIGINT, &all.interrupt_before, nullptr);
  ::sigaction(SIGTERM, &all.terminate_before, nullptr);
}

int StopSignals::number() const { return received.load(std::memory_order_relaxed); }

}  // namespace peal::train
