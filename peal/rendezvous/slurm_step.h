// The variables of a task that srun has started. Used for programs that srun starts as ranks, and
// for a `peal run` that srun starts on each node.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "peal/config/environment.h"

namespace peal::rendezvous {

/// Whether this process is a batch script of Slurm: it has the variables of a task, but is not one.
bool is_slurm_script(const Environment& environment);

/// The number of tasks of the step that runs this process; nothing if srun has not started it.
std::optional<int> tasks_of_step(const Environment& environment);

/// The first node of the step, else of the job. Errors: usage for a malformed list.
std::optional<std::string> first_node_of_step(const Environment& environment);

/// A port below the range from which systems give ports to clients. Jobs with consecutive numbers
/// get different ports. Nothing outside of a job.
std::optional<std::uint16_t> port_of_step(const Environment& environment);

/// Rejects an MPI launcher that has started this process alone although srun has started several
/// tasks: each task would be a world of its own. `mpi_size` is the launcher's world size, `origin`
/// the text for errors: "PMI_SIZE=1".
/// Errors: usage.
void check_is_no_singleton(const Environment& environment, int mpi_size, const std::string& origin);

}  // namespace peal::rendezvous
