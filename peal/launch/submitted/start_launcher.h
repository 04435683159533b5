// Starts the launcher of a submitted job in a process of its own, which goes on after `peal submit`
// and its terminal have ended.
#pragma once

#include <optional>
#include <string>

#include "peal/launch/jobs/job_folder.h"
#include "peal/launch/jobs/launcher_process.h"

namespace peal::launch::submitted {

/// Executes `peal job FOLDER` in a session of its own, with the environment of this process. Its
/// output goes to launcher.log in the folder. `peal`: the path of the program. Returns nothing if
/// the process has ended already: a short job, or hosts that cannot be used.
/// Errors: resource (no process, the log cannot be written, the program cannot be executed).
std::optional<jobs::LauncherProcess> start_launcher(const std::string& peal,
                                                    const jobs::JobFolder& folder);

}  // namespace peal::launch::submitted
