// Forks: whether this is still the process that made a group. Used by both extension modules, each
// of which has its own.
#pragma once

#include <atomic>
#include <string>

namespace peal::python {

/// Counts the forks that lie between the first process and this one. Cost: a load.
int generation();

/// Errors: usage, where this process was forked from the one that is in the group, with what to
/// call instead.
void check_not_forked(int generation_of_group, const std::string& group, const char* instead);

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

}  // namespace peal::python
