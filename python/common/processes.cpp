#include "python/common/processes.h"

#include <pthread.h>

#include <atomic>

#include "peal/base/error.h"

namespace peal::python {
namespace {

std::atomic<int> forks = 0;

}  // namespace

int generation() {
  static const int registered =
      ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  static_cast<void>(registered);
  return forks.load(std::memory_order_relaxed);
}

void check_not_forked(int generation_of_group, const std::string& group, const char* instead) {
  if (generation() == generation_of_group) return;
  throw Error(ErrorKind::kUsage,
              "this process was forked from one that is in the group " + group +
                  ", and is not in it itself: call " + instead + " here");
}

}  // namespace peal::python
