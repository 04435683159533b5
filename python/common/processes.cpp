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

struct Member {
  std::weak_ptr<ProcessGroup> group;
  EndWork end_work;
};

struct Enlisted {
  int generation = 0;
  std::vector<Member> members = {};
  int ending = 0;  // calls of let_go that end something, be it on another thread
};

/// Never destroyed: a thread may still come here when static objects are.
Guarded<Enlisted>& enlisted() {
  static auto* const all = new Guarded<Enlisted>();
  return *all;
}

/// Of what was enlisted before a fork nothing is this process's.
void forget_others(Enlisted& all) {
  if (all.generation != generation()) all = {.generation = generation()};
}

struct Living {
  ProcessGroupPtr group;
  EndWork end_work;
};

std::vector<Living> living() {
  return enlisted().with([](Enlisted& all) {
    forget_others(all);
    std::vector<Living> living;
    for (const Member& one : all.members) {
      if (auto group = one.group.lock()) living.push_back({std::move(group), one.end_work});
    }
    return living;
  });
}

void wait_for_those_that_end(Timeout timeout) {
  enlisted().wait(
      Deadline::after(timeout),
      [](const Enlisted& all) { return all.ending == 0; },
      [](const Enlisted&) {});
}

/// Lets go of the last reference, and is seen to by `leave_all` meanwhile.
class Ending {
 public:
  explicit Ending(std::shared_ptr<const void> last) : last_(std::move(last)) {
    enlisted().with([](Enlisted& all) {
      forget_others(all);
      ++all.ending;
    });
  }
  ~Ending() {
    last_.reset();
    enlisted().update([](Enlisted& all) { --all.ending; });
  }
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;

 private:
  std::shared_ptr<const void> last_;
};

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
  if (generation() != generation_of_group) {
    static_cast<void>(new auto(std::move(held)));
    return;
  }
  const WithoutGil without_gil;
  auto ending = std::make_unique<Ending>(std::move(held));
  if (!is_backend_thread) return ending.reset();
  const Ending* const there = ending.release();  // which goes on the other thread, or never
  try {
    start_thread([there] { delete there; }).detach();
  } catch (const Error&) {
    // Without a thread that may wait for its own it stays.
  }
}

void enlist(const ProcessGroupPtr& group, EndWork end_work) {
  enlisted().with([&](Enlisted& all) {
    forget_others(all);
    std::erase_if(all.members, [](const Member& one) { return one.group.expired(); });
    all.members.push_back({group, std::move(end_work)});
  });
}

void tell_all_of_exception(const std::string& what) noexcept {
  try {
    for (const Living& one : living()) one.group->abort_by_exception(what);
  } catch (const std::exception&) {
    // The process ends, and the peers hear that.
  }
}

void leave_in_haste(ProcessGroup& group, const EndWork& end_work) noexcept {
  const Deadline deadline = Deadline::after(std::chrono::seconds(1));
  try {
    if (end_work) end_work(deadline);
    group.destroy(deadline.left());
  } catch (const std::exception&) {
    // Nobody is left to be told.
  }
}

void leave_all() noexcept {
  for (const Living& one : living()) leave_in_haste(*one.group, one.end_work);
  wait_for_those_that_end(std::chrono::seconds(2));
}

}  // namespace peal::python
