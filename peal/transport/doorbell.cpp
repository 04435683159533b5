#include "peal/transport/doorbell.h"

#include <errno.h>
#include <sys/eventfd.h>

#include "peal/base/error.h"

namespace peal::transport {

Doorbell::Doorbell(BellState& state)
    : state_(&state), event_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (!event_) throw system_error("cannot make an eventfd (see ulimit -n)", errno);
}

void Doorbell::hush() noexcept {
  eventfd_t count = 0;
  (void)::eventfd_read(event_.get(), &count);  // fails when it was not rung, which is as well
}

void Doorbell::ring() noexcept {
  (void)::eventfd_write(event_.get(), 1);  // fails when it was rung 2^64 times, which is as well
}

}  // namespace peal::transport
