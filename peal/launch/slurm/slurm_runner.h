// Runs jobs in Slurm by its own commands. The batch script is the launcher of the job
// (launch/submitted), which starts an agent on each node by srun.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "peal/launch/runner.h"

namespace peal::launch::slurm {

/// `directory`: with the folders of the jobs (jobs/job_folder.h), which the nodes of the cluster
/// must reach by the same path. `start` expects the folder of the job to exist; the other calls
/// expect Submission::engine_id there. `peal`: the path of this program, also on the nodes.
/// Status: as in slurm_state.h. If Slurm does not answer, or has forgotten the job, the folder
/// tells the state. What Slurm has decided after the launcher's end is added to the end record.
/// Cancel: the launcher gets SIGTERM and ends the ranks with their grace. A second call lets Slurm
/// end everything at once.
std::unique_ptr<Runner> make_slurm_runner(std::filesystem::path directory, std::string peal);

}  // namespace peal::launch::slurm
