#include "peal/rendezvous/slurm_allocation.h"

#include "peal/base/error.h"
#include "peal/base/parse_number.h"
#include "peal/rendezvous/nodelist.h"

namespace peal::rendezvous {
namespace {

/// The number of the step in which newer versions of salloc run the shell.
constexpr const char* kInteractiveStep = "4294967290";

/// More components are a mistake. Slurm allows 128 (MAX_HET_JOB_COMPS).
constexpr int kMostComponents = 1024;

int number_of(const Environment& environment, const std::string& name, int node) {
  const auto list = environment(name.c_str());
  return list ? tasks_on_node(*list, node).value_or(1) : 1;
}

/// `suffix`: of the variables of a component, such as "_HET_GROUP_1".
void add_nodes(const Environment& environment,
               const std::string& suffix,
               std::optional<int> component,
               std::vector<AllocatedNode>& nodes) {
  const auto list = environment(("SLURM_JOB_NODELIST" + suffix).c_str());
  if (!list) return;
  int index = 0;
  for (const std::string& name : all_hosts(*list)) {
    nodes.push_back({.name = name,
                     .tasks = number_of(environment, "SLURM_TASKS_PER_NODE" + suffix, index),
                     .cpus = number_of(environment, "SLURM_JOB_CPUS_PER_NODE" + suffix, index),
                     .component = component});
    ++index;
  }
}

}  // namespace

std::optional<SlurmAllocation> read_slurm_allocation(const Environment& environment) {
  if (!environment("SLURM_JOB_ID")) return std::nullopt;
  const auto step = environment("SLURM_STEP_ID");
  if (step && step != kInteractiveStep) return std::nullopt;
  SlurmAllocation allocation{.nodes = {}, .has_tasks = environment("SLURM_NTASKS").has_value()};
  const auto size = environment("SLURM_HET_SIZE");
  const int components = size ? try_parse_number<int>(*size).value_or(0) : 0;
  if (components < 0 || components > kMostComponents) {
    throw Error(ErrorKind::kUsage, "SLURM_HET_SIZE is not a number of components: " + *size);
  }
  for (int i = 0; i < components; ++i) {
    add_nodes(environment, "_HET_GROUP_" + std::to_string(i), i, allocation.nodes);
  }
  if (components == 0) add_nodes(environment, "", std::nullopt, allocation.nodes);
  if (allocation.nodes.empty()) return std::nullopt;
  return allocation;
}

std::map<std::string, int> components_of(const SlurmAllocation& allocation) {
  std::map<std::string, int> components;
  for (const AllocatedNode& node : allocation.nodes) {
    if (node.component) components.emplace(node.name, *node.component);
  }
  return components;
}

}  // namespace peal::rendezvous
