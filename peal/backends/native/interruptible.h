// A call that waits while another thread runs its operation, and that can be interrupted.
#pragma once

#include "peal/backends/native/group_error.h"
#include "peal/base/clock.h"
#include "peal/base/interrupt.h"
#include "peal/mail/ticket.h"

namespace peal::native {

/// Calls `interrupt`; an exception that it throws becomes the group error.
inline void set_if_interrupted(GroupError& group_error, const Interrupt& interrupt) {
  if (group_error.is_set()) return;
  try {
    let_interrupt(interrupt);
  } catch (const Interrupted& by) {
    group_error.set(error_of(by));
  }
}

/// Returns when the ticket has ended. The group error ends it too.
inline void await(const mail::Ticket& ticket, const Interrupt& interrupt, GroupError& group_error) {
  const auto slice = [&] {
    return interrupt ? Deadline(Clock::now() + kInterruptEvery) : Deadline(TimePoint::max());
  };
  while (!ticket.wait(slice())) set_if_interrupted(group_error, interrupt);
}

}  // namespace peal::native
