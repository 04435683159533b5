// Data behind a mutex, for threads that keep the mutex while they poll. Such a thread notices when
// other threads want the mutex, and passes it on. The mutex may outlive the data: after locking it,
// a thread must check whether the data still exists. Holds the mailbox of the message loop.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>

namespace peal::native {

/// A mutex that counts the threads that wait for it.
class FairMutex {
 public:
  void lock() {
    if (mutex_.try_lock()) return;
    wanted_.fetch_add(1);
    mutex_.lock();
    wanted_.fetch_sub(1);
    let_in_.fetch_add(1);
  }
  void unlock() { mutex_.unlock(); }

  /// Called by the thread inside. If threads wait, lets at least one of them in. A thread that
  /// locks the mutex again and again cannot keep waiting threads out.
  /// Cost: a load while no thread waits.
  void let_others_enter() {
    if (wanted_.load(std::memory_order_relaxed) == 0) return;
    const std::uint32_t before = let_in_.load();
    mutex_.unlock();
    // std::mutex is not fair: if this thread locked it again at once, waiting threads would not get
    // it.
    while (wanted_.load() > 0 && let_in_.load() == before) ::sched_yield();
    lock();
  }

 private:
  std::mutex mutex_;
  std::atomic<int> wanted_ = 0;
  std::atomic<std::uint32_t> let_in_ = 0;  // the number of threads that had to wait
};

template <class T>
class FairGuarded {
 public:
  template <class... Args>
  explicit FairGuarded(FairMutex& mutex, Args&&... args)
      : mutex_(mutex), value_(std::forward<Args>(args)...) {}

  /// Holds the mutex while it lives.
  class Inside {
   public:
    explicit Inside(FairGuarded& place) : mutex_(place.mutex_), value_(place.value_) {
      mutex_.lock();
    }
    /// This thread has locked the mutex already.
    Inside(FairGuarded& place, std::adopt_lock_t) : mutex_(place.mutex_), value_(place.value_) {}
    ~Inside() { mutex_.unlock(); }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

    T& operator*() const { return value_; }
    T* operator->() const { return &value_; }
    void let_others_enter() { mutex_.let_others_enter(); }

   private:
    FairMutex& mutex_;
    T& value_;
  };

  /// Calls `use(value)` while holding the mutex; returns its result.
  template <class Use>
  decltype(auto) with(Use&& use) {
    const Inside inside(*this);
    return std::forward<Use>(use)(*inside);
  }

 private:
  FairMutex& mutex_;
  T value_;
};

}  // namespace peal::native
