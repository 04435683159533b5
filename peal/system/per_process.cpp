#include "peal/system/per_process.h"

#include <pthread.h>

#include <utility>

namespace peal {
namespace {

std::atomic<int> forks = 0;

/// A list, so that leak checkers can reach the kept objects.
struct Left {
  std::shared_ptr<const void> copy;
  Left* next = nullptr;
};
std::atomic<Left*> all_left = nullptr;

}  // namespace

int generation() {
  static const int kRegistered =
      ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  static_cast<void>(kRegistered);
  return forks.load(std::memory_order_relaxed);
}

void leave_to_parent(std::shared_ptr<const void> copy) noexcept {
  if (!copy) return;
  auto* const left = new Left{std::move(copy), all_left.load()};
  while (!all_left.compare_exchange_weak(left->next, left)) {
  }
}

void leave_to_parent(std::thread copy) noexcept {
  leave_to_parent(std::make_shared<std::thread>(std::move(copy)));
}

}  // namespace peal
