// Data inside its mutex, as Guarded, for threads that stay inside while they poll: they see when
// others want in. Holds the mailbox of the message loop.
#pragma once

#include <sched.h>

#include <atomic>
#include <mutex>
#include <utility>

namespace peal::native {

template <class T>
class Attended {
 public:
  template <class... Args>
  explicit Attended(Args&&... args) : value_(std::forward<Args>(args)...) {}

  /// Holds the mutex while it lives.
  class Inside {
   public:
    explicit Inside(Attended& place) : place_(place) { place_.lock(); }
    ~Inside() { place_.mutex_.unlock(); }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

    T& operator*() const { return place_.value_; }
    T* operator->() const { return &place_.value_; }

    /// Lets those in who wait, if any do. Cost: a load while nobody waits.
    void let_others_in() {
      if (place_.wanted_.load(std::memory_order_relaxed) == 0) return;
      place_.mutex_.unlock();
      // The mutex is not fair: whoever takes it again at once keeps it from those who wake up.
      while (place_.wanted_.load() > 0) ::sched_yield();
      place_.lock();
    }

   private:
    Attended& place_;
  };

  /// Calls `use(value)` while the mutex is held and returns what it returns.
  template <class Use>
  decltype(auto) with(Use&& use) {
    const Inside inside(*this);
    return std::forward<Use>(use)(*inside);
  }

 private:
  void lock() {
    if (mutex_.try_lock()) return;
    wanted_.fetch_add(1);
    mutex_.lock();
    wanted_.fetch_sub(1);
  }

  std::mutex mutex_;
  std::atomic<int> wanted_ = 0;
  T value_;
};

}  // namespace peal::native
