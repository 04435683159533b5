// What `peal run` tells the agents on other hosts. Used by run_job.cpp.
#pragma once

#include <string>

#include "peal/base/clock.h"
#include "peal/cli/run_job.h"
#include "peal/launch/agents/agents.h"
#include "peal/launch/rank_command.h"

namespace peal::cli {

/// An agent ends its ranks after this silence of the launcher. The launcher may be stopped for a
/// while (SIGSTOP), or its machine may be very busy.
inline constexpr Timeout kLauncherSilence{15'000};
/// How long the records of all hosts may take to arrive after a failure.
inline constexpr Timeout kRoundRecordsLimit{10'000};

/// `job`: PEAL_JOB. `inherited`: the environment of the launcher.
launch::agents::AgentsOptions agents_options(const RunRequest& request,
                                             const std::string& job,
                                             const launch::Variables& inherited);

}  // namespace peal::cli
