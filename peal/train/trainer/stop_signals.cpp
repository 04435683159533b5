#include "peal/train/trainer/stop_signals.h"

#include <atomic>

namespace peal::train {
namespace {

std::atomic<bool> signal_received = false;  // a signal handler reaches nothing but globals

// SA_RESETHAND: the second signal has its usual effect.
void note_signal(int) { signal_received.store(true, std::memory_order_relaxed); }

void handle(int number, struct sigaction& before) {
  struct sigaction action = {};
  action.sa_handler = note_signal;
  action.sa_flags = SA_RESTART | SA_RESETHAND;
  ::sigaction(number, &action, &before);
}

}  // namespace

StopSignals::StopSignals() {
  signal_received.store(false, std::memory_order_relaxed);
  handle(SIGINT, interrupt_before_);
  handle(SIGTERM, terminate_before_);
}

StopSignals::~StopSignals() {
  ::sigaction(SIGINT, &interrupt_before_, nullptr);
  ::sigaction(SIGTERM, &terminate_before_, nullptr);
}

bool StopSignals::received() const { return signal_received.load(std::memory_order_relaxed); }

}  // namespace peal::train
