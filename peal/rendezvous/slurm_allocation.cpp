#include "peal/rendezvous/slurm_allocation.h"

#include "peal/rendezvous/nodelist.h"

namespace peal::rendezvous {
namespace {

/// The number of the step in which newer versions of salloc run the shell.
constexpr const char* kInteractiveStep = "4294967290";

int number_of(const Environment& environment, const char* name, int node) {
  const auto list = environment(name);
  return list ? tasks_on_node(*list, node).value_or(1) : 1;
}

}  // namespace

std::optional<SlurmAllocation> read_slurm_allocation(const Environment& environment) {
  const auto list = environment("SLURM_JOB_NODELIST");
  if (!list || !environment("SLURM_JOB_ID")) return std::nullopt;
  const auto step = environment("SLURM_STEP_ID");
  if (step && step != kInteractiveStep) return std::nullopt;
  SlurmAllocation allocation{.nodes = {}, .has_tasks = environment("SLURM_NTASKS").has_value()};
  for (const std::string& name : all_hosts(*list)) {
    const int index = static_cast<int>(allocation.nodes.size());
    allocation.nodes.push_back({.name = name,
                                .tasks = number_of(environment, "SLURM_TASKS_PER_NODE", index),
                                .cpus = number_of(environment, "SLURM_JOB_CPUS_PER_NODE", index)});
  }
  return allocation;
}

}  // namespace peal::rendezvous
