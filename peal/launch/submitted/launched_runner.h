// The runner of jobs whose launcher is a process that `peal submit` starts on this machine: local
// and ssh. Status and logs come from the folder of the job.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "peal/launch/runner.h"

namespace peal::launch::submitted {

/// `directory`: with the folders of the jobs (jobs/job_folder.h). `start` expects the folder of the
/// job to exist. `peal`: the path of this program.
std::unique_ptr<Runner> make_launched_runner(std::filesystem::path directory, std::string peal);

}  // namespace peal::launch::submitted
