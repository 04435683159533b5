// Where a submitted job runs, by its runner: on which hosts, which engine starts the agents there,
// and until when. Used by job_launcher.cpp.
#pragma once

#include <optional>
#include <vector>

#include "peal/base/clock.h"
#include "peal/launch/agents/engine.h"
#include "peal/launch/host_list.h"
#include "peal/launch/job/job.h"
#include "peal/launch/jobs/job_records.h"
#include "peal/launch/submitted/launcher_options.h"

namespace peal::launch::submitted {

/// Errors: usage, if the job is for Slurm and this process is not in an allocation.
agents::EngineOptions engine_of(const Job& job,
                                const jobs::Submission& submission,
                                const LauncherOptions& given);

/// The nodes of the allocation, the hosts that the user has given, or this machine. Errors: as for
/// engine_of.
std::vector<HostSlots> hosts_for(const Job& job,
                                 const jobs::Submission& submission,
                                 const LauncherOptions& given);

/// When Slurm ends the allocation. Nothing if the job needs no warning before that. Asks squeue.
std::optional<TimePoint> end_of_allocation(const Job& job, const jobs::Submission& submission);

/// How often Slurm has put the job of this process into its queue again.
int requeues();

}  // namespace peal::launch::submitted
