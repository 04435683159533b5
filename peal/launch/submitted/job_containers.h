// The containers of a submitted job: which images it needs, and the container of each process.
// Pure. Called by job_ranks.cpp and job_launcher.cpp, and by `peal submit`.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "peal/launch/containers/container.h"
#include "peal/launch/cores.h"
#include "peal/launch/job/job.h"

namespace peal::launch::submitted {

bool has_containers(const Job& job);

/// Whether all roles have an image. Then Job::directory is a folder of the containers only.
bool runs_only_in_containers(const Job& job);

/// The container of a process of the role, which has an image. The ranks of a node share the node's
/// cores and memory equally. `cores`: of the host. If the role wants more CPUs than the host has,
/// the container has no limit of CPUs, because docker rejects such a limit.
containers::Container container_of(const Job& job,
                                   const Role& role,
                                   int attempt,
                                   std::span<const Core> cores);

/// "node1 has 2 CPUs, and a node of master wants 4: ..." Empty if no container wants more.
std::string missing_cpus(const Job& job, const std::string& host, std::span<const Core> cores);

}  // namespace peal::launch::submitted
