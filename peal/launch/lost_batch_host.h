// A Slurm job that has lost the node of its batch script, on which the launcher ran. Called by
// agents and by the runner for Slurm.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "peal/base/clock.h"
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

/// The name of the job in the line for `scontrol requeue`: "7", or "5_2" for a task of an array,
/// because the number of the array's first task means the whole array. Pure.
std::string name_for_requeue(std::string_view line);

/// SlurmdTimeout in the output of `scontrol show config`: the silence after which Slurm counts a
/// node as lost. Pure.
std::optional<std::chrono::seconds> slurmd_timeout(std::string_view configuration);

struct LostBatchHostWait {
  Timeout ask_every{5'000};
  Timeout first_answer{15'000};
  Timeout margin{60'000};  // in addition to twice the SlurmdTimeout
};

/// With --no-kill, Slurm does not end a job of several nodes that loses the node of its batch
/// script: the job would hold the others, without work, until its time limit. This call waits until
/// Slurm has noticed the loss, and asks Slurm to start the job again. Slurm ends this process then.
///
/// Call it only if the launcher was lost. Returns at once if another node does it (may_requeue).
/// Returns after twice the SlurmdTimeout and a margin if Slurm notices no loss, because only the
/// process of the launcher was lost, or if Slurm stops answering. Returns after `first_answer` if
/// Slurm has not answered once. Cost: on the first two nodes, two calls of scontrol; on one of
/// them, one every five seconds while it waits.
void requeue_after_lost_batch_host(const Environment& environment,
                                   const LostBatchHostWait& wait = {});

}  // namespace peal::launch
