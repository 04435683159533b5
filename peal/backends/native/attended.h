// Data that is reached through a door, for threads that stay inside while they poll: they see when
// others want in. The door is a mutex that may outlive the data: whoever has passed it finds out
// whether there still is any. Holds the mailbox of the message loop.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>

namespace peal::native {

/// Lets one thread at a time in.
class Door {
 public:
  void lock() {
    if (mutex_.try_lock()) return;
    wanted_.fetch_add(1);
    mutex_.lock();
    wanted_.fetch_sub(1);
    let_in_.fetch_add(1);
  }
  void unlock() { mutex_.unlock(); }

  /// By who is inside: lets one in who waits, if anybody does; who comes again and again does not
  /// keep this one out. Cost: a load while nobody waits.
  void let_others_in() {
    if (wanted_.load(std::memory_order_relaxed) == 0) return;
    const std::uint32_t before = let_in_.load();
    mutex_.unlock();
    // The mutex is not fair: whoever takes it again at once keeps it from those who wake up.
    while (wanted_.load() > 0 && let_in_.load() == before) ::sched_yield();
    lock();
  }

 private:
  std::mutex mutex_;
  std::atomic<int> wanted_ = 0;
  std::atomic<std::uint32_t> let_in_ = 0;  // who had to wait
};

template <class T>
class Attended {
 public:
  template <class... Args>
  explicit Attended(Door& door, Args&&... args)
      : door_(door), value_(std::forward<Args>(args)...) {}

  /// Is inside while it lives.
  class Inside {
   public:
    explicit Inside(Attended& place) : door_(place.door_), value_(place.value_) { door_.lock(); }
    /// This thread has passed the door.
    Inside(Attended& place, std::adopt_lock_t) : door_(place.door_), value_(place.value_) {}
    ~Inside() { door_.unlock(); }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

    T& operator*() const { return value_; }
    T* operator->() const { return &value_; }
    void let_others_in() { door_.let_others_in(); }

   private:
    Door& door_;
    T& value_;
  };

  /// Calls `use(value)` inside and returns what it returns.
  template <class Use>
  decltype(auto) with(Use&& use) {
    const Inside inside(*this);
    return std::forward<Use>(use)(*inside);
  }

 private:
  Door& door_;
  T value_;
};

}  // namespace peal::native
