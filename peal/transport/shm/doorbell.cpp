#include "peal/transport/shm/doorbell.h"

#include <errno.h>
#include <sys/eventfd.h>

#include "peal/base/error.h"
#include "peal/transport/window/futex.h"

namespace peal::transport {
namespace {

const std::uint32_t& word_of(const BellState& state) {
  static_assert(sizeof(state.sleeps) == sizeof(std::uint32_t));
  return reinterpret_cast<const std::uint32_t&>(state.sleeps);
}

}  // namespace

Event::Event() : fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (!fd_) throw system_error("cannot make an eventfd (see ulimit -n)", errno);
}

void Event::ring() noexcept {
  (void)::eventfd_write(fd_.get(), 1);  // fails only if it was rung 2^64 times
}

void Event::reset_count() noexcept {
  eventfd_t count = 0;
  (void)::eventfd_read(fd_.get(), &count);  // fails only if it was not rung
}

void Doorbell::sleep(std::uint32_t announced, Deadline deadline) noexcept {
  sleep_on(word_of(*state_), announced, deadline);
}

void Doorbell::ring() noexcept {
  if (event_) {
    event_->ring();
  } else {
    ring_if_asleep();
  }
}

void Doorbell::wake(std::uint32_t sleep) noexcept {
  if (event_) {
    event_->ring();
    mark_rung(sleep);
  } else {
    mark_rung(sleep);
    wake_sleepers(word_of(*state_));
  }
}

}  // namespace peal::transport
