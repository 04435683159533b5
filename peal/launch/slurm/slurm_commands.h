// The commands of Slurm that the runner uses: sbatch, scontrol, sacct, scancel. Their errors, with
// Slurm's own sentence and what to do. Called by slurm_runner.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "peal/launch/program.h"
#include "peal/launch/slurm/slurm_state.h"

namespace peal::launch::slurm {

/// Returns Slurm's number for the job. Errors: resource.
std::string submit(std::string_view script);

/// The components of the job; none if Slurm does not know the job, or if the number belongs to
/// another job now: `name` is the name that sbatch got. With an empty `number`, only the name
/// counts. Asks accounting if the controller has forgotten it. Errors: resource (Slurm does not
/// answer).
std::vector<SlurmJob> ask(const std::string& number, const std::string& name);

/// `job`: its number, or "--name=NAME". Ends a job that waits. Asks the launcher of a job that runs
/// to end, which gives its ranks their grace. A job that has ended is not an error. Errors:
/// resource (Slurm does not answer or refuses).
void ask_to_end(const std::string& job);
/// Ends all processes of the job by Slurm's own rules. Errors: as above.
void end_now(const std::string& job);

/// "could not submit the job: Slurm says: ... (what to do)". `err`: the stderr of a command.
std::string explain(std::string_view during, std::string_view err);

/// The environment of sbatch, and so of the job: that of this process, without the variables of a
/// job of Slurm in which this process runs. `variables`: "NAME=value". Pure.
std::vector<std::string> environment_for_sbatch(std::vector<std::string> variables);

}  // namespace peal::launch::slurm
