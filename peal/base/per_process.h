// Forks: which process this is, and what each has one of.
#pragma once

#include <atomic>
#include <memory>
#include <thread>

namespace peal {

/// Counts the forks that lie between the process that asked first and this one. Cost: a load.
int generation();

/// The process that made an object. A process that is forked from it has a copy of the object, and
/// must not end what the object stands for: threads, which the child does not have, and shared
/// memory, files and connections, which the parent still uses. Cost: as `generation`.
class OwnerProcess {
 public:
  OwnerProcess() : generation_(generation()) {}

  /// Whether this is the process that made the object.
  bool is_current() const { return generation_ == generation(); }

 private:
  int generation_;
};

/// Keeps `copy` for good: the copy that a forked child has of what its parent owns. No destructor
/// runs. Threads: any.
void leave_to_parent(std::shared_ptr<const void> copy) noexcept;
/// The same for a thread, which the child does not have.
void leave_to_parent(std::thread copy) noexcept;

/// What each process has one of, for static storage. One that was forked has its own, since the
/// parent's may have been in use: a mutex then stays locked. Never destroyed: threads may come here
/// when static objects have been.
template <class T>
class PerProcess {
 public:
  T& get() {
    Own* own = own_.load(std::memory_order_acquire);
    if (own != nullptr && own->generation == generation()) return own->value;
    auto* const fresh = new Own{.generation = generation()};
    if (own_.compare_exchange_strong(own, fresh, std::memory_order_acq_rel)) return fresh->value;
    delete fresh;  // another thread's came first
    return own->value;
  }

 private:
  struct Own {
    int generation;
    T value{};
  };

  std::atomic<Own*> own_ = nullptr;
};

}  // namespace peal
