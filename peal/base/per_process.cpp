#include "peal/base/per_process.h"

#include <pthread.h>

namespace peal {
namespace {

std::atomic<int> forks = 0;

}  // namespace

int generation() {
  static const int kRegistered =
      ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  static_cast<void>(kRegistered);
  return forks.load(std::memory_order_relaxed);
}

}  // namespace peal
