// Support for forks: the generation of this process, the owner of an object, and values that exist
// once in each process.
#pragma once

#include <atomic>
#include <memory>
#include <thread>

namespace peal {

/// The number of forks between the process that called it first and this one. Cost: a load.
int generation();

/// The process that created an object. A forked child has a copy of the object. The child must not
/// destroy the resources of the object: threads, which the child does not have, and shared memory,
/// files and connections, which the parent still uses.
/// Cost: as `generation`.
class OwnerProcess {
 public:
  OwnerProcess() : generation_(generation()) {}

  /// Whether this process created the object.
  bool is_current() const { return generation_ == generation(); }

 private:
  int generation_;
};

/// Keeps `copy` for ever: a forked child's copy of an object that the parent owns. No destructor
/// runs.
/// Threads: any.
void leave_to_parent(std::shared_ptr<const void> copy) noexcept;
/// The same for a thread, which the child does not have.
void leave_to_parent(std::thread copy) noexcept;

/// A value that exists once in each process, for static storage. A forked child has a new value,
/// since the parent's may have been in use: a mutex would stay locked. Never destroyed: threads may
/// use it after static objects are destroyed.
template <class T>
class PerProcess {
 public:
  T& get() {
    Own* own = own_.load(std::memory_order_acquire);
    if (own != nullptr && own->generation == generation()) return own->value;
    auto* const fresh = new Own{.generation = generation()};
    if (own_.compare_exchange_strong(own, fresh, std::memory_order_acq_rel)) return fresh->value;
    delete fresh;  // another thread was first
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
