// The values that all steps of a meeting share. `meet` makes them; open_store.h, given_store.h and
// registration.h use them.
#pragma once

#include "peal/base/clock.h"
#include "peal/base/interrupt.h"
#include "peal/base/report.h"
#include "peal/config/config.h"
#include "peal/rendezvous/ended_ranks.h"
#include "peal/rendezvous/launcher_environment.h"

namespace peal::rendezvous {

/// Borrows its values for one call of `meet`.
struct MeetContext {
  const LauncherEnvironment& launch;
  const Config& config;
  const EndedRanks& ended;
  Deadline deadline;
  const Report& report;
  const Interrupt& interrupt;
};

}  // namespace peal::rendezvous
