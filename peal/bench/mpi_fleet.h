// OpenMPI and MPICH as peers: finds what is installed, builds the project's worker with it, and
// says how to start that. Called by `peal bench`.
#pragma once

#include <string>
#include <vector>

#include "peal/bench/fleet.h"

namespace peal::bench {

struct Mpi {
  std::string name;  // "openmpi", "mpich"
  std::string compiler;
  std::string launcher;
};

/// What PATH has: mpicc.openmpi and mpicc.mpich with their launchers (as Debian names them), else
/// mpicc, which is asked which it is. Cost: starts a few short programs.
std::vector<Mpi> find_mpis();

/// Between hosts only OpenMPI is measured. Builds the worker, or takes the one that an earlier run
/// has built from the same source with the same compiler (in $XDG_CACHE_HOME/peal or
/// ~/.cache/peal). Its settings are the MPI's defaults, but that OpenMPI's files in
/// /dev/shm lie in a folder there, and that each rank is bound to a core, or
/// none where there are more ranks than cores.
FleetOrAbsent mpi_fleet(const Ground&, const Mpi& mpi);

}  // namespace peal::bench
