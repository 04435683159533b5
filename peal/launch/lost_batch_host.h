// A Slurm job that has lost the node of its batch script, on which the launcher ran. Called by
// agents and by the runner for Slurm.
#pragma once

#include <string>
#include <string_view>

#include "peal/config/environment.h"

namespace peal::launch {

/// The node of the batch script in a line of `scontrol show job --oneliner`, if the job runs and
/// Slurm has taken the node out of it. Empty for a list of nodes that peal cannot read: the line
/// may be of any job in the cluster. Pure.
std::string lost_batch_host(std::string_view line);

/// Whether `node` asks Slurm to start the job again if the node of the batch script is lost: one
/// node does this, the first one of the others. `line`: as above. `nodes`: SLURM_JOB_NODELIST.
/// False if the job has no batch script (salloc), has several components, or must not start again
/// (--no-requeue). Pure.
bool may_requeue(std::string_view line, std::string_view nodes, std::string_view node);

/// With --no-kill, Slurm does not end a job of several nodes that loses the node of its batch
/// script: the job would hold the others, without work, until its time limit. This call waits until
/// Slurm has noticed the loss, and asks Slurm to start the job again. Slurm ends this process then.
/// Returns at once in all other cases: another node does it (may_requeue), or Slurm does not
/// answer. Cost: one scontrol, and one every five seconds while it waits.
void requeue_after_lost_batch_host(const Environment& environment);

}  // namespace peal::launch
