// The batch script of a job for sbatch(1). Pure. Called by slurm_runner.cpp and by
// `peal submit --print`.
#pragma once

#include <string>
#include <vector>

#include "peal/launch/job/job.h"

namespace peal::launch::slurm {

struct ScriptOptions {
  std::string id{};      // of the job
  std::string peal{};    // the absolute path of the program, on the nodes too
  std::string folder{};  // of the job (jobs/job_folder.h); absolute, and the same on the nodes
};

/// The script asks Slurm for the nodes, and then becomes the launcher, `peal job FOLDER`. It has no
/// command, no variable and no secret of the job: the launcher reads the job from its folder.
///   | job | option of sbatch |
///   |---|---|
///   | nodes of the roles, spare_nodes | --nodes; of a fixed number also --ntasks-per-node=1 |
///   | cpus, else a core for each rank of a node | --cpus-per-task |
///   | memory, gpus | --mem, --gpus-per-node |
///   | max_run_time | --time |
///   | labels | --comment |
///   | priority below 0 | --nice |
///   | engine_options.slurm | last, as they are |
/// Roles that ask for the same resources share one component. If roles differ, the job is a
/// heterogeneous job with a component for each group of such roles, in the order of the roles.
/// Errors: usage (roles differ, and the number of nodes is not fixed; a path with a newline).
std::string batch_script(const Job& job, const ScriptOptions& options);

/// The components of the job: the roles that share each of them.
std::vector<std::vector<Role>> components(const Job& job);

/// Sentences about fields of the job that have no meaning in Slurm.
std::vector<std::string> unused_fields(const Job& job);

}  // namespace peal::launch::slurm
