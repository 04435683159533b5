#include "python/common/processes.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "peal/base/error.h"
#include "peal/base/guarded.h"
#include "peal/base/thread.h"

#include "python/common/gil.h"

namespace peal::python {
namespace {

std::atomic<int> forks = 0;
thread_local bool is_backend_thread = false;

struct Enlisted {
  int generation = 0;
  std::vector<std::weak_ptr<ProcessGroup>> groups;
};

/// Never destroyed: a thread may still come here when static objects are.
Guarded<Enlisted>& enlisted() {
  static auto* const all = new Guarded<Enlisted>();
  return *all;
}

std::vector<ProcessGroupPtr> living() {
  return enlisted().with([](const Enlisted& all) {
    std::vector<ProcessGroupPtr> groups;
    if (all.generation != generation()) return groups;
    for (const auto& one : all.groups) {
      if (auto group = one.lock()) groups.push_back(std::move(group));
    }
    return groups;
  });
}

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

BackendThread::BackendThread() : before_(std::exchange(is_backend_thread, true)) {}
BackendThread::~BackendThread() { is_backend_thread = before_; }

void let_go(std::shared_ptr<const void> held, int generation_of_group) {
  if (!held) return;
  auto last = std::make_unique<std::shared_ptr<const void>>(std::move(held));
  if (generation() != generation_of_group) {
    static_cast<void>(last.release());
    return;
  }
  const WithoutGil without_gil;
  if (!is_backend_thread) return last.reset();
  const auto* const there = last.release();  // which goes on the other thread, or never
  try {
    start_thread([there] { delete there; }).detach();
  } catch (const Error&) {
    // Without a thread that may wait for its own it stays.
  }
}

void enlist(const ProcessGroupPtr& group) {
  enlisted().with([&](Enlisted& all) {
    if (all.generation != generation()) all = {generation(), {}};
    std::erase_if(all.groups, [](const auto& one) { return one.expired(); });
    all.groups.push_back(group);
  });
}

void tell_all_of_exception(const std::string& what) noexcept {
  try {
    for (const ProcessGroupPtr& group : living()) group->abort_by_exception(what);
  } catch (const std::exception&) {
    // The process ends, and the peers hear that.
  }
}

void leave_in_haste(ProcessGroup& group) noexcept {
  try {
    group.destroy(std::chrono::seconds(1));
  } catch (const std::exception&) {
    // Nobody is left to be told.
  }
}

void leave_all() noexcept {
  for (const ProcessGroupPtr& group : living()) leave_in_haste(*group);
}

}  // namespace peal::python
