#include "peal/backends/native/fault_injector.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/error.h"

namespace peal::native {
namespace {

/// A timer of the system, because a stopped process cannot wake itself.
class WakeUp {
 public:
  explicit WakeUp(Timeout after) {
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGCONT;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(after);
    itimerspec time{};
    time.it_value.tv_sec = static_cast<time_t>(seconds.count());
    time.it_value.tv_nsec = static_cast<long>(std::chrono::nanoseconds(after - seconds).count());
    // for a first signal that comes before the process is stopped
    time.it_interval = time.it_value;
    if (::timer_create(CLOCK_MONOTONIC, &event, &timer_) != 0) {
      throw system_error("cannot make a timer that ends a freeze", errno);
    }
    if (::timer_settime(timer_, 0, &time, nullptr) != 0) {
      ::timer_delete(timer_);
      throw system_error("cannot set the timer that ends a freeze", errno);
    }
  }
  ~WakeUp() { ::timer_delete(timer_); }
  WakeUp(const WakeUp&) = delete;
  WakeUp& operator=(const WakeUp&) = delete;

 private:
  timer_t timer_{};
};

void strike(const ProcessFault& fault) {
  switch (fault.kind) {
    case ProcessFault::Kind::kKill:
      ::kill(::getpid(), SIGKILL);
      return;
    case ProcessFault::Kind::kFreeze: {
      std::optional<WakeUp> wake_up;
      if (fault.length) wake_up.emplace(*fault.length);
      ::kill(::getpid(), SIGSTOP);
      return;
    }
  }
}

}  // namespace

std::unique_ptr<FaultInjector> FaultInjector::try_make(const FaultPlan& plan, Rank rank) {
  std::vector<ProcessFault> faults;
  for (const ProcessFault& fault : plan.processes) {
    if (fault.rank == rank) faults.push_back(fault);
  }
  return faults.empty() ? nullptr : std::make_unique<FaultInjector>(std::move(faults));
}

void FaultInjector::begin_operation() {
  const std::int64_t operation = operations_.fetch_add(1, std::memory_order_relaxed) + 1;
  for (const ProcessFault& fault : faults_) {
    if (fault.operation == operation) strike(fault);
  }
}

/// Otherwise a fault that never happened would pass for one that the job survived.
void FaultInjector::end(const Report& report) {
  if (has_ended_.exchange(true)) return;
  const std::int64_t operations = operations_.load(std::memory_order_relaxed);
  std::vector<std::string> unreached;
  for (const ProcessFault& fault : faults_) {
    if (fault.operation > operations) unreached.push_back(to_text(fault));
  }
  if (unreached.empty()) return;
  report(
      fmt::format("injected faults that were never reached: {}; rank {} has "
                  "begun {} operations in all",
                  fmt::join(unreached, "; "),
                  faults_.front().rank,
                  operations));
}

}  // namespace peal::native
