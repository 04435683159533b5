// A call that waits for somebody else to end its operation, and lets itself be interrupted.
#pragma once

#include "peal/base/clock.h"
#include "peal/base/error.h"
#include "peal/base/interrupt.h"
#include "peal/engine/ticket.h"
#include "peal/engine/verdict.h"

namespace peal::native {

/// What `interrupt` throws is the group's verdict.
inline void let_interrupt(const Interrupt& interrupt, engine::Verdict& verdict) {
  if (!interrupt || verdict.reached()) return;
  try {
    interrupt();
  } catch (...) {
    verdict.reach(current_error("a call that was interrupted"));
  }
}

/// Returns when the ticket has ended, as it does when the verdict is reached.
inline void await(const engine::Ticket& ticket,
                  const Interrupt& interrupt,
                  engine::Verdict& verdict) {
  const auto slice = [&] {
    return interrupt ? Deadline(Clock::now() + kInterruptEvery) : Deadline(TimePoint::max());
  };
  while (!ticket.wait(slice())) let_interrupt(interrupt, verdict);
}

}  // namespace peal::native
