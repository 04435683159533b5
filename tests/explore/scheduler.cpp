#include "tests/explore/scheduler.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <linux/futex.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace peal::explore {
namespace {

constexpr Instant kStart{1'000'000'000};
constexpr std::int64_t kLookCosts = 2'000;
/// How far the time may jump while other threads could run.
constexpr std::int64_t kMostEarly = 30'000'000;
/// The probability of such a jump at each scheduling point.
constexpr double kJumps = 0.002;
/// The probability that a thread loses its turn at a scheduling point at which it could continue.
/// Each run takes one of these.
constexpr std::array kLosesTurn = {0.1, 0.01, 0.003, 0.001};

constexpr int kMostYields = 20;
/// The probability that a thread that is about to sleep is held up, and its priority then.
constexpr double kIsHeldUp = 0.3;
constexpr std::int64_t kHeldUp = -1'000'000'000'000;

/// The C library's function, because `syscall` is interposed. Looked up before threads start: if
/// two threads initialised a static variable, that would be a scheduling point inside the
/// scheduler.
const auto real_syscall = reinterpret_cast<long (*)(long, ...)>(::dlsym(RTLD_NEXT, "syscall"));

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) {
  return real_syscall(SYS_futex, &word, operation, value, nullptr, nullptr, 0);
}

/// Passes the right to run from one thread to another.
class Baton {
 public:
  void pass() {
    is_here_.store(1);
    futex(is_here_, FUTEX_WAKE_PRIVATE, 1);
  }
  void await() {
    while (is_here_.load() == 0) futex(is_here_, FUTEX_WAIT_PRIVATE, 0);
    is_here_.store(0);
  }

 private:
  std::atomic<std::uint32_t> is_here_ = 0;
};

}  // namespace

struct Thread {
  enum class State : std::uint8_t { kReady, kAsleep, kEnded };

  bool can_run() const {
    return state == State::kReady || (state == State::kAsleep && ready && ready());
  }
  State state = State::kReady;
  Instant deadline = Instant::never();
  std::function<bool()> ready;
  const char* why = "";
  bool is_late = false;
  std::int64_t priority = 0;
  int yields = 0;
  Baton baton;
  std::array<void*, 32> stack{};
  int depth = 0;
};

namespace {

/// The thread with the highest priority runs. A thread that loses its turn gets the lowest priority
/// of all, so the others overtake it by as much as they can: most wake-ups are lost by a thread
/// that stops between two steps for a long time. Some runs are a random walk instead.
/// Source: Burckhardt et al. 2010, a randomized scheduler with probabilistic guarantees of finding
///   bugs.
class Scheduler {
 public:
  explicit Scheduler(const Options& options)
      : options_(options),
        random_(options.seed),
        loses_turn_(kLosesTurn[choose(kLosesTurn.size())]),
        walks_at_random_(happens(0.3)) {
    add();
  }

  Thread& first() { return *threads_.front(); }
  Thread& add() {
    threads_.push_back(std::make_unique<Thread>());
    threads_.back()->priority = static_cast<std::int64_t>(choose(1'000'000));
    return *threads_.back();
  }
  /// The next pick passes over the thread. A thread that yields again and again waits for a thread
  /// with a lower priority.
  void yield(Thread& thread) {
    if (++thread.yields % kMostYields == 0) demote(thread);
    step_aside(thread);
  }
  std::uint64_t choose(std::uint64_t bound) { return random_() % bound; }
  void progress() { without_progress_ = 0; }
  Instant look_at_clock() {
    now_.nanoseconds += kLookCosts;
    return now_;
  }

  /// Runs any thread that can run, perhaps this one. Returns when it is this thread's turn again.
  void step(Thread& thread) {
    const bool has_ended = thread.state == Thread::State::kEnded;
    if (thread.state == Thread::State::kReady && is_passed_over_ == nullptr) {
      if (!happens(loses_turn_)) return;
      demote(thread);
    }
    Thread& next = pick();
    is_passed_over_ = nullptr;
    if (&next == &thread) return;
    next.baton.pass();
    if (!has_ended) thread.baton.await();
  }

  void hold_up(Thread& thread) {
    if (happens(kIsHeldUp)) {
      thread.priority = kHeldUp + --lowest_;
      step_aside(thread);
    } else {
      step(thread);
    }
  }

  void sleep(Thread& thread, Instant deadline, const char* why, std::function<bool()> ready) {
    thread.state = Thread::State::kAsleep;
    thread.deadline = deadline;
    thread.why = why;
    thread.ready = std::move(ready);
    thread.is_late = false;
    if (options_.remembers_stacks) remember_stack(thread);
    step(thread);
  }

 private:
  void step_aside(Thread& thread) {
    is_passed_over_ = &thread;
    step(thread);
  }

  void demote(Thread& thread) { thread.priority = --lowest_; }

  bool happens(double probability) {
    return static_cast<double>(choose(1'000'000)) < probability * 1'000'000;
  }

  /// Hidden from the scheduler: a mutex of the unwinder must not be a scheduling point, so that the
  /// run with stacks equals the run without.
  static void remember_stack(Thread& thread);

  Thread& pick() {
    std::vector<Thread*> able;
    for (const auto& thread : threads_) {
      if (thread->can_run()) able.push_back(thread.get());
    }
    if (able.size() > 1) std::erase(able, is_passed_over_);
    Thread* const next = next_by_time();
    if (able.empty()) {
      note_standstill(next);
      return wake_late(*next);
    }
    if (next != nullptr && next->deadline < later(kMostEarly) && happens(kJumps)) {
      return wake_late(*next);
    }
    Thread& chosen = walks_at_random_
                         ? *able[choose(able.size())]
                         : **std::ranges::max_element(
                               able, {}, [](const Thread* thread) { return thread->priority; });
    chosen.state = Thread::State::kReady;
    return chosen;
  }

  /// The sleeper with the earliest deadline; null without such a sleeper.
  Thread* next_by_time() {
    Thread* next = nullptr;
    for (const auto& thread : threads_) {
      if (thread->state != Thread::State::kAsleep || thread->deadline == Instant::never()) continue;
      if (next == nullptr || thread->deadline < next->deadline) next = thread.get();
    }
    return next;
  }

  Thread& wake_late(Thread& thread) {
    now_ = std::max(now_, thread.deadline);
    thread.is_late = true;
    thread.state = Thread::State::kReady;
    return thread;
  }

  /// All threads sleep until `next` is late.
  void note_standstill(const Thread* next) {
    if (next == nullptr) fail("all threads sleep, and nothing will wake them");
    without_progress_ += std::max<std::int64_t>(next->deadline.nanoseconds - now_.nanoseconds, 0);
    if (without_progress_ <= options_.longest_standstill.count()) return;
    fail("all threads sleep, and only the time will wake them");
  }

  Instant later(std::int64_t nanoseconds) const { return {now_.nanoseconds + nanoseconds}; }

  [[noreturn]] void fail(const char* what) {
    ::dprintf(STDOUT_FILENO, "seed %lu: %s\n", static_cast<unsigned long>(options_.seed), what);
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      const Thread& thread = *threads_[i];
      if (thread.state != Thread::State::kAsleep) continue;
      ::dprintf(STDOUT_FILENO, "thread %zu sleeps: %s", i, thread.why);
      if (thread.deadline == Instant::never()) {
        ::dprintf(STDOUT_FILENO, ", without a deadline\n");
      } else {
        const std::int64_t left = thread.deadline.nanoseconds - now_.nanoseconds;
        ::dprintf(STDOUT_FILENO, ", %ld us to go\n", static_cast<long>(left / 1'000));
      }
      ::backtrace_symbols_fd(thread.stack.data(), thread.depth, STDOUT_FILENO);
    }
    ::_exit(kStandstill);
  }

  const Options options_;
  std::mt19937_64 random_;
  const double loses_turn_;
  const bool walks_at_random_;
  std::int64_t lowest_ = 0;  // priority
  const Thread* is_passed_over_ = nullptr;
  std::vector<std::unique_ptr<Thread>> threads_;
  Instant now_ = kStart;
  std::int64_t without_progress_ = 0;  // nanoseconds since something moved
};

/// One for this process. The interposed functions have no other access to it.
std::optional<Scheduler> scheduler;
thread_local Thread* self = nullptr;

void Scheduler::remember_stack(Thread& thread) {
  Thread* const hidden = std::exchange(self, nullptr);
  thread.depth = ::backtrace(thread.stack.data(), static_cast<int>(thread.stack.size()));
  self = hidden;
}

}  // namespace

void run(const Options& options, const std::function<void()>& body) {
  scheduler.emplace(options);
  self = &scheduler->first();
  body();
  self = nullptr;
}

bool is_managed() { return self != nullptr; }

void point() { scheduler->step(*self); }

void yield() { scheduler->yield(*self); }

void point_before_sleep() { scheduler->hold_up(*self); }

void progress() { scheduler->progress(); }

std::uint64_t choose(std::uint64_t bound) { return scheduler->choose(bound); }

Instant look_at_clock() { return scheduler->look_at_clock(); }

Woken sleep_until(Instant deadline, const char* why, std::function<bool()> ready) {
  scheduler->sleep(*self, deadline, why, std::move(ready));
  return self->is_late ? Woken::kLate : Woken::kReady;
}

Thread& add_thread() { return scheduler->add(); }

void enter_thread(Thread& thread) {
  thread.baton.await();
  self = &thread;
}

void leave_thread() {
  Thread& thread = *std::exchange(self, nullptr);
  thread.state = Thread::State::kEnded;
  scheduler->step(thread);
}

bool has_left(const Thread& thread) { return thread.state == Thread::State::kEnded; }

}  // namespace peal::explore
