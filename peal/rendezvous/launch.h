// What the program that started this process says in the environment: who the process is, and what
// the job is called. Used by `identify` and `meet`.
#pragma once

#include <string>

#include "peal/base/environment.h"
#include "peal/rendezvous/rendezvous.h"
#include "peal/rendezvous/url.h"

namespace peal::rendezvous {

enum class Launcher : unsigned char {
  kNone,         // nothing in the environment says who this process is
  kEnvironment,  // RANK and WORLD_SIZE, by hand, `peal run` or others of this convention
  kTorchrun,
  kSlurm,
  kOpenMpi,
  kMpich,  // and others whose processes are started by Hydra
};

struct Launch {
  Identity identity;
  /// Whether the launcher said identity.local_rank and local_world_size; else they stand for ranks
  /// that are all on this host, until `meet` knows better.
  bool local_is_known = false;
  Launcher launcher = Launcher::kNone;
  /// The same on all ranks of a job, different for jobs that run at once; "" if nobody said it.
  std::string job;
};

/// Pure. Errors: as `identify`.
Launch read_launch(const Wish& wish, const Url& url, const Environment& environment);

}  // namespace peal::rendezvous
