// What `peal run` tells the agents on other hosts. Used by run_job.cpp.
#pragma once

#include <string>

#include "peal/cli/run_job.h"
#include "peal/launch/agents/agents.h"
#include "peal/launch/rank_command.h"

namespace peal::cli {

/// `job`: PEAL_JOB. `inherited`: the environment of the launcher.
launch::agents::AgentsOptions agents_options(const RunRequest& request,
                                             const std::string& job,
                                             const launch::Variables& inherited);

}  // namespace peal::cli
