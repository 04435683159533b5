// Reads the launcher's environment variables: this process's rank and the job's name. Used by
// `identify` and `meet`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "peal/config/environment.h"
#include "peal/rendezvous/rendezvous.h"
#include "peal/rendezvous/url.h"

namespace peal::rendezvous {

enum class Launcher : unsigned char {
  kNone,         // the environment gives no rank
  kEnvironment,  // RANK and WORLD_SIZE, by hand, `peal run` or others of this convention
  kTorchrun,
  kSlurm,
  kOpenMpi,
  kMpich,  // and others whose processes are started by Hydra
  kNodes,  // one that starts one process on each node: node_variables.h
};

struct LauncherEnvironment {
  Identity identity;
  /// Whether the launcher gave identity.local_rank and local_world_size. If not, their values
  /// assume that all ranks are on this host, and `meet` corrects them later.
  bool local_is_known = false;
  Launcher launcher = Launcher::kNone;
  /// The same on all ranks of a job, different for jobs that run at once; "" if it is not known.
  std::string job;
  /// How many ranks each node has: node N has ranks N * ranks_per_node and so on. 0: not known.
  int ranks_per_node = 0;
  /// Where rank 0 is and listens, by variables other than MASTER_ADDR; "" if it is not known.
  std::string master;
  std::optional<std::uint16_t> master_port;
};

/// Pure. Errors: as `identify`.
LauncherEnvironment read_launcher_environment(const MeetRequest& request,
                                              const Url& url,
                                              const Environment& environment);

}  // namespace peal::rendezvous
