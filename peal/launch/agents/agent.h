// The agent: the process that starts ranks on a host for a launcher elsewhere, and guards them.
// Started by ssh or another engine as `peal agent`; run by the program.
#pragma once

#include <string>

#include "peal/system/fd.h"

namespace peal::launch::agents {

/// Serves one launcher. Returns when all ranks and their descendants have ended, and the launcher
/// is gone. `version`: of peal, for the banner.
///
/// If the launcher closes the connection, or is silent for too long, the agent ends the ranks by
/// SIGTERM, and by SIGKILL after the grace. If the launcher has not sent kStop before, it was lost:
/// then the agent may ask Slurm to start the job again (lost_batch_host.h). A signal to the agent
/// also ends the ranks, but never starts the job again.
/// If the agent is killed, its guard (local_guard.h) kills the ranks. Threads: forks; call it
/// before the program has a second thread. Errors: resource; mismatch if the peer is not a
/// launcher.
void serve_launcher(Fd in, Fd out, const std::string& version);

}  // namespace peal::launch::agents
