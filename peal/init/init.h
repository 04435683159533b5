// The front door: from the environment to a process group, with every part wired here and nowhere
// else.
#pragma once

#include <optional>
#include <string>

#include "peal/base/fault_plan.h"
#include "peal/base/report.h"
#include "peal/group/process_group.h"

namespace peal {

struct InitOptions {
  /// env:// (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, and what Slurm, Open MPI, MPICH and
  /// torchrun set), tcp://host:port, file:///path.
  std::string init_method = "env://";
  /// Needed by tcp:// and file:// unless the URL or the environment says them.
  std::optional<Rank> rank;
  std::optional<int> world_size;
  std::string backend = "native";
  /// Of rendezvous, connection and every operation. kGroupTimeout: PEAL_TIMEOUT, or 5 minutes.
  Timeout timeout = kGroupTimeout;
  Report report = silent_report();
  /// What is to go wrong, as a rehearsal (`parse_faults`), the same on all ranks. Empty: what
  /// PEAL_INJECT says. Faults that are injected are reported as a warning.
  FaultPlan faults = {};
};

/// Meets the other ranks and returns the group of all of them.
/// Order: called by every rank of the job.
/// Errors: usage (what is missing, given twice or contradicts; a fault of a rank that is not
/// there, or between ranks that share memory), timeout (who did not come),
/// mismatch (ranks that were given different transports), peer_lost, resource, unsupported (no such
/// backend).
ProcessGroupPtr init_process_group(const InitOptions& options = {});

}  // namespace peal
