// Forks: which process this is, and what each has one of.
#pragma once

#include <atomic>

namespace peal {

/// Counts the forks that lie between the process that asked first and this one. Cost: a load.
int generation();

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
