#include "python/common/waiting.h"

#include "peal/base/error.h"

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
    } catch (const Error&) {
      if (work.is_completed()) return work.wait();  // with its own error, if that was none
      if (slice.at() == deadline.at()) throw;
    }
    check_signals();
  }
}

}  // namespace peal::python
