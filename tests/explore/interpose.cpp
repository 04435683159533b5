// Replaces the functions of the C library by which threads wait. A thread under the scheduler
// (scheduler.h) waits in the scheduler, any other thread as usual. These definitions are linked
// into the program, so they are found first, by the C++ library too.
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "tests/explore/scheduler.h"

namespace explore = peal::explore;

namespace {

using explore::Instant;
using explore::Woken;

/// The C library's function of this name.
template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}
#define REAL(function) static auto* const real_##function = real<decltype(::function)>(#function)

/// A thread that sleeps on a condition variable, or on a word of memory.
struct Sleeper {
  const void* on = nullptr;
  bool is_woken = false;
};

/// The locks and sleeps of the scheduled threads. One thread runs at a time, so no lock is needed.
struct World {
  std::set<const pthread_mutex_t*> held;
  std::list<Sleeper> sleepers;
  std::map<pthread_t, explore::Thread*> threads;
};

World& world() {
  static auto* const all = new World;  // threads may outlive main
  return *all;
}

Instant instant_of(const timespec& time) { return {time.tv_sec * 1'000'000'000 + time.tv_nsec}; }

/// Wakes one sleeper, chosen at random, or all. Returns how many.
int wake(const void* on, bool all) {
  std::vector<Sleeper*> asleep;
  for (Sleeper& sleeper : world().sleepers) {
    if (sleeper.on == on && !sleeper.is_woken) asleep.push_back(&sleeper);
  }
  if (asleep.empty()) return 0;
  if (!all) asleep = {asleep[explore::choose(asleep.size())]};
  for (Sleeper* const sleeper : asleep) sleeper->is_woken = true;
  return static_cast<int>(asleep.size());
}

Woken sleep_on(const void* on, Instant deadline, const char* why) {
  const auto sleeper = world().sleepers.insert(world().sleepers.end(), {on, false});
  const Woken woken = explore::sleep_until(deadline, why, [&] { return sleeper->is_woken; });
  world().sleepers.erase(sleeper);
  return woken;
}

int wait_on_condition(pthread_cond_t* condition, pthread_mutex_t* mutex, Instant deadline) {
  REAL(pthread_mutex_unlock);
  // Between the unlock and the sleep no other thread runs.
  real_pthread_mutex_unlock(mutex);
  world().held.erase(mutex);
  const Woken woken = sleep_on(condition, deadline, "on a condition");
  ::pthread_mutex_lock(mutex);
  return woken == Woken::kLate ? ETIMEDOUT : 0;
}

struct Start {
  void* (*body)(void*);
  void* argument;
  explore::Thread& thread;
};

void* run_thread(void* start) {
  const std::unique_ptr<Start> owned(static_cast<Start*>(start));
  explore::enter_thread(owned->thread);
  void* const result = owned->body(owned->argument);
  explore::leave_thread();
  return result;
}

/// Like the system call. The C++ library uses FUTEX_WAIT without a timeout, to wait for another
/// thread that initialises a static. peal uses FUTEX_WAIT_BITSET, whose timeout is a point in time.
long futex(std::uint32_t* word, int operation, std::uint32_t value, const timespec* until) {
  switch (operation & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET: {
      explore::point();
      if (std::atomic_ref(*word).load() != value) {
        errno = EAGAIN;
        return -1;
      }
      const Instant deadline = until == nullptr ? Instant::never() : instant_of(*until);
      if (sleep_on(word, deadline, "on a word of memory") == Woken::kReady) return 0;
      errno = ETIMEDOUT;
      return -1;
    }
    case FUTEX_WAKE: {
      // A thread that has not entered the scheduler yet sleeps in the system, for example on a
      // static variable that this thread has initialised.
      REAL(syscall);
      real_syscall(SYS_futex, word, operation, value);
      const int woken = wake(word, value > 1);
      explore::point();
      return woken;
    }
    default:
      ::dprintf(STDERR_FILENO, "explore: unknown futex operation: %d\n", operation);
      ::_exit(1);
  }
}

}  // namespace

extern "C" {

int pthread_mutex_lock(pthread_mutex_t* mutex) {
  REAL(pthread_mutex_lock);
  REAL(pthread_mutex_trylock);
  if (!explore::is_managed()) return real_pthread_mutex_lock(mutex);
  explore::point();
  while (real_pthread_mutex_trylock(mutex) != 0) {
    explore::sleep_until(
        Instant::never(), "on a mutex", [mutex] { return !world().held.contains(mutex); });
  }
  world().held.insert(mutex);
  return 0;
}

int pthread_mutex_trylock(pthread_mutex_t* mutex) {
  REAL(pthread_mutex_trylock);
  if (!explore::is_managed()) return real_pthread_mutex_trylock(mutex);
  explore::point();
  const int result = real_pthread_mutex_trylock(mutex);
  if (result == 0) world().held.insert(mutex);
  return result;
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) {
  REAL(pthread_mutex_unlock);
  const int result = real_pthread_mutex_unlock(mutex);
  if (explore::is_managed()) {
    world().held.erase(mutex);
    explore::point();
  }
  return result;
}

int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  REAL(pthread_cond_wait);
  if (!explore::is_managed()) return real_pthread_cond_wait(condition, mutex);
  return wait_on_condition(condition, mutex, Instant::never());
}

int pthread_cond_clockwait(pthread_cond_t* condition,
                           pthread_mutex_t* mutex,
                           clockid_t clock,
                           const timespec* deadline) {
  REAL(pthread_cond_clockwait);
  if (!explore::is_managed()) return real_pthread_cond_clockwait(condition, mutex, clock, deadline);
  return wait_on_condition(condition, mutex, instant_of(*deadline));
}

int pthread_cond_signal(pthread_cond_t* condition) {
  REAL(pthread_cond_signal);
  if (!explore::is_managed()) return real_pthread_cond_signal(condition);
  wake(condition, false);
  explore::point();
  return 0;
}

int pthread_cond_broadcast(pthread_cond_t* condition) {
  REAL(pthread_cond_broadcast);
  if (!explore::is_managed()) return real_pthread_cond_broadcast(condition);
  wake(condition, true);
  explore::point();
  return 0;
}

int pthread_create(pthread_t* thread,
                   const pthread_attr_t* attributes,
                   void* (*body)(void*),
                   void* argument) {
  REAL(pthread_create);
  if (!explore::is_managed()) return real_pthread_create(thread, attributes, body, argument);
  auto* const start = new Start{body, argument, explore::add_thread()};
  explore::Thread& added = start->thread;
  const int result = real_pthread_create(thread, attributes, run_thread, start);
  if (result != 0) ::_exit(1);  // otherwise the scheduler would wait for a thread that never enters
  world().threads[*thread] = &added;
  explore::point();
  return 0;
}

int pthread_join(pthread_t thread, void** result) {
  REAL(pthread_join);
  if (explore::is_managed()) {
    const explore::Thread& joined = *world().threads.at(thread);
    explore::sleep_until(
        Instant::never(), "on the end of a thread", [&] { return explore::has_left(joined); });
  }
  return real_pthread_join(thread, result);
}

int sched_yield() {
  REAL(sched_yield);
  if (!explore::is_managed()) return real_sched_yield();
  explore::yield();
  return 0;
}

int nanosleep(const timespec* time, timespec* left) {
  REAL(nanosleep);
  if (!explore::is_managed()) return real_nanosleep(time, left);
  const Instant deadline{explore::look_at_clock().nanoseconds + instant_of(*time).nanoseconds};
  explore::sleep_until(deadline, "for a while", {});
  return 0;
}

int clock_gettime(clockid_t clock, timespec* time) {
  REAL(clock_gettime);
  if (!explore::is_managed()) return real_clock_gettime(clock, time);
  explore::point();
  const Instant now = explore::look_at_clock();
  *time = {now.nanoseconds / 1'000'000'000, now.nanoseconds % 1'000'000'000};
  return 0;
}

int poll(pollfd* entries, nfds_t count, int timeout) {
  REAL(poll);
  if (!explore::is_managed()) return real_poll(entries, count, timeout);
  explore::point();
  int ready = real_poll(entries, count, 0);
  if (ready != 0 || timeout == 0) return ready;
  const Instant deadline =
      timeout < 0 ? Instant::never()
                  : Instant{explore::look_at_clock().nanoseconds + timeout * 1'000'000LL};
  explore::sleep_until(deadline, "in poll", [&] { return real_poll(entries, count, 0) != 0; });
  return real_poll(entries, count, 0);
}

long syscall(long number, ...) {
  REAL(syscall);
  va_list list;
  va_start(list, number);
  long arguments[6];
  for (long& argument : arguments) argument = va_arg(list, long);
  va_end(list);
  if (number == SYS_futex && explore::is_managed()) {
    return futex(reinterpret_cast<std::uint32_t*>(arguments[0]),
                 static_cast<int>(arguments[1]),
                 static_cast<std::uint32_t>(arguments[2]),
                 reinterpret_cast<const timespec*>(arguments[3]));
  }
  return real_syscall(
      number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
}

}  // extern "C"
