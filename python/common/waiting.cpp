#include "python/common/waiting.h"

#include <memory>
#include <string>
#include <utility>

#include "peal/base/error.h"

#include "python/common/leaving.h"
#include "python/common/signals.h"

namespace peal::python {

void wait_for(Work& work, Timeout timeout) {
  constexpr Timeout kSlice{50};
  const Deadline deadline =
      timeout == kGroupTimeout ? Deadline(TimePoint::max()) : Deadline::after(timeout);
  while (true) {
    const Deadline slice = deadline.within(kSlice);
    try {
      return work.wait(slice.left());
    } catch (const Error& error) {
      if (work.is_completed()) return work.wait();  // throws the operation's error, if it failed
      if (error.kind() != ErrorKind::kTimeout || slice.at() == deadline.at()) throw;
    }
    check_signals();
  }
}

bool wait_until_ended(ProcessGroup& group, Work& work, Deadline deadline) {
  const bool is_bounded = deadline.at() != TimePoint::max();
  while (!work.is_completed() && !deadline.passed()) {
    try {
      wait_for(work, is_bounded ? deadline.left() : kGroupTimeout);
    } catch (const Error& error) {
      if (!work.is_completed() && !deadline.passed()) group.abort(std::string(error.message()));
    }
  }
  return work.is_completed();
}

void when_completed(Work& work, std::function<void()> then) {
  const auto once = std::make_shared<std::function<void()>>(std::move(then));
  work.when_completed([once] {
    const BackendThread here;
    std::exchange(*once, nullptr)();  // frees the captured objects on this thread
  });
}

void keep_until_completed(Work& work, std::function<void()> then) noexcept {
  const auto kept = std::make_shared<std::function<void()>>(std::move(then));
  try {
    when_completed(work, [kept] { (*kept)(); });
  } catch (const std::exception&) {
    static_cast<void>(new auto(kept));
  }
}

}  // namespace peal::python
