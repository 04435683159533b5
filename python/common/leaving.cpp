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
#include "peal/base/per_process.h"
#include "peal/base/thread.h"

#include "python/common/gil.h"
#include "python/common/signals.h"

namespace peal::python {
namespace {

/// The generation in which this thread became one of a backend. A child that was forked from it is
/// none.
thread_local std::optional<int> backend_thread_of;

bool is_backend_thread() { return backend_thread_of == generation(); }

struct Member {
  std::weak_ptr<ProcessGroup> group;
  EndWork end_work;
};

struct Enlisted {
  std::vector<Member> members = {};
  int ending = 0;                           // calls of let_go that end a group, on any thread
  int leaving = 0;                          // LeavingInOrder objects that live
  TimePoint cut_off_at = TimePoint::max();  // when these are interrupted
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

/// Lets go of the last reference, and is seen to by `leave_all` meanwhile.
class Ending {
 public:
  explicit Ending(std::shared_ptr<const void> last) : last_(std::move(last)) {
    enlisted().with([](Enlisted& all) { ++all.ending; });
  }
  ~Ending() {
    // A group asks for no signals where it ends by its last reference; but a SparseSum, which waits
    // for its last sum before that, would.
    const WithoutSignals without_signals;
    last_.reset();
    enlisted().update([](Enlisted& all) { --all.ending; });
  }
  /// For good.
  void keep() { static_cast<void>(new auto(std::move(last_))); }
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;

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
          " was called where an operation ends, as in the callback of a future: on a thread "
          "for which it would wait. Call it on another thread");
}

void let_go(std::shared_ptr<const void> held, int generation_of_group) {
  if (!held) return;
  if (generation() != generation_of_group) {
    static_cast<void>(new auto(std::move(held)));
    return;
  }
  const WithoutGil without_gil;
  auto ending = std::make_unique<Ending>(std::move(held));
  if (!is_backend_thread()) return ending.reset();
  Ending* const there = ending.release();  // which goes on the other thread
  try {
    start_thread([there] { delete there; }).detach();
  } catch (const Error&) {
    there->keep();  // without a thread that may wait for its own
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
    // The process ends, and the peers hear that.
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
    // Nobody is left to be told.
  }
}

LeavingInOrder::LeavingInOrder() : before_(std::exchange(is_leaving, true)) {
  enlisted().with([](Enlisted& all) { ++all.leaving; });
}

LeavingInOrder::~LeavingInOrder() {
  const bool is_ending = enlisted().update([](Enlisted& all) {
    --all.leaving;
    return all.cut_off_at != TimePoint::max();
  });
  is_leaving = before_;
  while (is_ending) ::pause();
}

bool LeavingInOrder::is_cut_off() {
  return enlisted().with([](const Enlisted& all) { return Clock::now() >= all.cut_off_at; });
}

void check_interrupts() {
  check_signals();
  if (!is_leaving || !LeavingInOrder::is_cut_off()) return;
  throw Error(ErrorKind::kPeerLost, "the Python interpreter ends");
}

/// The youngest first, which may work on an older one.
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
