// The nodes that Slurm has given to a batch script, or to a shell of salloc. Used by the program
// `peal run`, which starts ranks on all of them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "peal/config/environment.h"

namespace peal::rendezvous {

struct AllocatedNode {
  std::string name;  // Slurm's name, which is not always the host name
  int tasks = 1;     // that the user has asked for
  int cpus = 1;
  std::optional<int> component{};  // of a heterogeneous job; srun wants its number
  friend bool operator==(const AllocatedNode&, const AllocatedNode&) = default;
};

struct SlurmAllocation {
  std::vector<AllocatedNode> nodes;  // of a heterogeneous job: of all components, in their order
  bool has_tasks = false;            // whether the user has asked for a number of tasks
  friend bool operator==(const SlurmAllocation&, const SlurmAllocation&) = default;
};

/// Nothing outside of an allocation, and in a task of srun: srun has started one process for each
/// task already.
/// Errors: usage for malformed lists.
std::optional<SlurmAllocation> read_slurm_allocation(const Environment& environment);

/// The component of each node of a heterogeneous job; of other jobs, none.
std::map<std::string, int> components_of(const SlurmAllocation& allocation);

}  // namespace peal::rendezvous
