// The launcher of a submitted job: runs the job from its folder to its end, in the process that
// `peal submit` has started (start_launcher.h), or in the batch script of Slurm. It is the launcher
// of `peal run` with other ways to be asked and to answer: the folder of the job.
#pragma once

#include <string>

#include "peal/launch/jobs/job_folder.h"

namespace peal::launch::submitted {

/// Runs the attempts of the job, on the hosts that its runner names:
///   | runner | hosts | agents are started by |
///   |---|---|---|
///   | local | this machine | the launcher |
///   | ssh | those of LauncherOptions | ssh |
///   | mpi | those of LauncherOptions | mpirun |
///   | slurm | the nodes of the allocation in which this process runs | srun |
/// Slurm may start the launcher again after the loss of its node: then the attempts continue after
/// those that have logs. Writes the reports of the attempts to stdout, the output of the ranks to
/// the folder, and the end record before it returns the exit code of the job:
///   | end | exit code |
///   |---|---|
///   | all ranks, or those of the success role, have ended with 0 | 0 |
///   | a failure, after the last restart | of the first failure; 128 + n for signal n |
///   | cancelled | 143 |
///   | Job::max_run_time | 124 |
///   | hosts that cannot be used | 1, or 126 or 127 for the command |
/// `version`: of this peal. Threads: as `run` in launcher.h. Errors: resource (the folder cannot be
/// read or written).
int run_submitted_job(const jobs::JobFolder& folder, const std::string& version);

}  // namespace peal::launch::submitted
