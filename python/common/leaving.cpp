#include "python/common/leaving.h"

#include <unistd.h>

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "peal/base/error.h"
#include "peal/base/guarded.h"
#include "peal/system/per_process.h"
#include "peal/system/thread.h"

#include "python/common/gil.h"
#include "python/common/signals.h"

namespace peal::python {
namespace {

/// The generation in which this thread became a backend thread. In a forked child the thread is not
/// a backend thread.
thread_local std::optional<int> backend_thread_of;

bool is_backend_thread() { return backend_thread_of == generation(); }

struct Member {
  std::weak_ptr<ProcessGroup> group;
  EndWork end_work;
};

struct Enlisted {
  std::vector<Member> members = {};
  int ending = 0;                           // running calls of release_object that end a group
  int leaving = 0;                          // living NormalLeave objects
  TimePoint cut_off_at = TimePoint::max();  // interrupts threads with a NormalLeave object
};

thread_local bool is_leaving = false;

Guarded<Enlisted>& enlisted() {
  static constinit PerProcess<Guarded<Enlisted>> all;
  return all.get();
}

struct Living {
  ProcessGroupPtr group;
  EndWork end_work;
};

std::vector<Living> living() {
  return enlisted().with([](const Enlisted& all) {
    std::vector<Living> living;
    for (const Member& one : all.members) {
      if (auto group = one.group.lock()) living.push_back({std::move(group), one.end_work});
    }
    return living;
  });
}

void wait_for_those_that_end() {
  enlisted().wait(
      Deadline(TimePoint::max()),
      [](const Enlisted& all) { return all.ending == 0 && all.leaving == 0; },
      [](const Enlisted&) {});
}

/// Releases the last reference. `leave_all` waits for this object.
class LastReference {
 public:
  explicit LastReference(std::shared_ptr<const void> last) : last_(std::move(last)) {
    enlisted().with([](Enlisted& all) { ++all.ending; });
  }
  ~LastReference() {
    // The destructor of a group does not check signals. A SparseSum would: it waits for its last
    // sum before the group ends.
    const WithoutSignals without_signals;
    last_.reset();
    enlisted().update([](Enlisted& all) { --all.ending; });
  }
  /// Leaks the reference.
  void keep() { static_cast<void>(new auto(std::move(last_))); }
  LastReference(const LastReference&) = delete;
  LastReference& operator=(const LastReference&) = delete;

 private:
  std::shared_ptr<const void> last_;
};

}  // namespace

BackendThread::BackendThread() : before_(std::exchange(backend_thread_of, generation())) {}
BackendThread::~BackendThread() { backend_thread_of = before_; }

void check_may_wait_for_threads(const char* operation) {
  if (!is_backend_thread()) return;
  throw Error(
      ErrorKind::kUsage,
      std::string(operation) +
          " was called on a thread of the group, as in the callback of a future, and would wait "
          "for this thread. Call it on another thread");
}

void release_object(std::shared_ptr<const void> held, int generation_of_group) {
  if (!held) return;
  if (generation() != generation_of_group) {
    static_cast<void>(new auto(std::move(held)));
    return;
  }
  const WithoutGil without_gil;
  auto last = std::make_unique<LastReference>(std::move(held));
  if (!is_backend_thread()) return last.reset();
  LastReference* const there = last.release();  // deleted on the other thread
  try {
    start_thread([there] { delete there; }).detach();
  } catch (const Error&) {
    there->keep();  // no thread is left that could wait for the group's threads
    delete there;
  }
}

void enlist(const ProcessGroupPtr& group, EndWork end_work) {
  enlisted().with([&](Enlisted& all) {
    std::erase_if(all.members, [](const Member& one) { return one.group.expired(); });
    all.members.push_back({group, std::move(end_work)});
  });
}

void tell_all_of_exception(const std::string& what) noexcept {
  try {
    for (const Living& one : living()) one.group->abort_by_exception(what);
  } catch (const std::exception&) {
    // The process ends, and the peers notice the end.
  }
}

void leave_in_haste(ProcessGroup& group, const EndWork& end_work) noexcept {
  if (is_backend_thread()) return;
  const Deadline deadline = Deadline::after(std::chrono::seconds(1));
  const WithoutSignals without_signals;
  try {
    if (end_work) end_work(deadline);
    group.destroy(deadline.left());
  } catch (const std::exception&) {
    // The process ends: no caller could handle the error.
  }
}

NormalLeave::NormalLeave() : before_(std::exchange(is_leaving, true)) {
  enlisted().with([](Enlisted& all) { ++all.leaving; });
}

NormalLeave::~NormalLeave() {
  const bool is_ending = enlisted().update([](Enlisted& all) {
    --all.leaving;
    return all.cut_off_at != TimePoint::max();
  });
  is_leaving = before_;
  while (is_ending) ::pause();
}

bool NormalLeave::is_cut_off() {
  return enlisted().with([](const Enlisted& all) { return Clock::now() >= all.cut_off_at; });
}

void check_interrupts() {
  check_signals();
  if (!is_leaving || !NormalLeave::is_cut_off()) return;
  throw Error(ErrorKind::kAborted,
              "the Python interpreter ends",
              {.cause = ErrorCause::kInterrupted, .reason = "the Python interpreter ends"});
}

// Leaves the newest group first, because it may depend on an older one.
void leave_all() noexcept {
  enlisted().with([](Enlisted& all) { all.cut_off_at = Clock::now() + std::chrono::seconds(1); });
  std::vector<Living> all = living();
  for (auto one = all.rbegin(); one != all.rend(); ++one) {
    leave_in_haste(*one->group, one->end_work);
  }
  all.clear();
  wait_for_those_that_end();
  enlisted().with([](Enlisted& now) { now.cut_off_at = TimePoint::max(); });
}

}  // namespace peal::python
