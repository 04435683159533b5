// Open MPI and MPICH as peers: finds the installed MPIs, builds the worker with them, and prepares
// the start of the worker. Called by `peal bench`.
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

/// The MPIs in PATH: mpicc.openmpi and mpicc.mpich with their launchers (the names of Debian), else
/// mpicc; the text of mpirun --version tells which MPI that is. Cost: starts a few short programs.
std::vector<Mpi> find_mpis();

/// Builds the worker, or uses the worker that an earlier run has built from the same source with
/// the same compiler (in $XDG_CACHE_HOME/peal or ~/.cache/peal). Between hosts, only Open MPI is
/// measured. Uses the MPI's default settings with two exceptions: the files of Open MPI in /dev/shm
/// are in a folder there, and each rank is bound to a core, if there are enough cores.
FleetOrAbsent mpi_fleet(const Setup&, const Mpi& mpi);

}  // namespace peal::bench
