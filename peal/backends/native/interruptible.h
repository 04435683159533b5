// A call that waits for somebody else to end its operation, and lets itself be interrupted.
#pragma once

#include "peal/base/clock.h"
#include "peal/base/interrupt.h"
#include "peal/engine/ticket.h"
#include "peal/engine/verdict.h"

namespace peal::native {

/// What `interrupt` throws is the group's verdict.
inline void reach_if_interrupted(engine::Verdict& verdict, const Interrupt& interrupt) {
  if (verdict.reached()) return;
  try {
    let_interrupt(interrupt);
  } catch (const Interrupted& by) {
    verdict.reach(error_of(by));
  }
}

/// Returns when the ticket has ended, as it does when the verdict is reached.
inline void await(const engine::Ticket& ticket,
                  const Interrupt& interrupt,
                  engine::Verdict& verdict) {
  const auto slice = [&] {
    return interrupt ? Deadline(Clock::now() + kInterruptEvery) : Deadline(TimePoint::max());
  };
  while (!ticket.wait(slice())) reach_if_interrupted(verdict, interrupt);
}

}  // namespace peal::native
