// Runs a job whose number of ranks is fixed during an attempt: on this machine or on other hosts,
// and again after a failure if the user allows it. Called by run_job.cpp.
#pragma once

#include "peal/cli/run_job.h"
#include "peal/launch/rank_command.h"

namespace peal::cli {

/// The environment of the ranks, as far as the user and this process's environment give it.
launch::Variables given_variables(const RunRequest& request, launch::Variables inherited);

/// Prints the report of each attempt, and returns the exit code of the last one. `inherited`: the
/// environment of this process. Errors: resource.
int run_attempts(const RunRequest& request, const launch::Variables& inherited);

}  // namespace peal::cli
