#include "peal/rendezvous/read_node_place.h"

#include <array>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/fnv.h"
#include "peal/config/launch_mark.h"
#include "peal/rendezvous/cluster_spec.h"
#include "peal/rendezvous/elastic_protocol.h"
#include "peal/rendezvous/node_variables.h"
#include "peal/rendezvous/slurm_step.h"

namespace peal::rendezvous {
namespace {

constexpr const char* kHere = "127.0.0.1";

using Row = std::optional<NodeVariables> (*)(const Environment&, const Process&);

/// A port for a job whose launcher gives none: the same on all its nodes.
std::uint16_t port_of(const std::string& job) {
  return static_cast<std::uint16_t>(20000 + fnv(job) % 10000);
}

std::optional<NodeVariables> torchrun_row(const Environment& environment, const Process&) {
  return torchrun_variables(environment);
}
std::optional<NodeVariables> dstack_row(const Environment& environment, const Process&) {
  return dstack_variables(environment);
}
std::optional<NodeVariables> skypilot_row(const Environment& environment, const Process&) {
  return skypilot_variables(environment);
}
std::optional<NodeVariables> cluster_row(const Environment& environment, const Process&) {
  return cluster_variables(environment);
}

/// WORLD_SIZE alone does not count, because a script of Slurm may export it for its tasks.
std::optional<NodeVariables> managed_row(const Environment& environment, const Process&) {
  const auto node = number_variable(environment, "RANK");
  const auto nodes = number_variable(environment, "WORLD_SIZE");
  if (!node) return std::nullopt;
  if (!nodes) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{} is set, but WORLD_SIZE is not: set WORLD_SIZE to the number of "
                            "nodes, or give --standalone to start ranks on this machine only",
                            node->origin));
  }
  check_range(*node, *nodes, "nodes");
  return NodeVariables{.launcher = "RANK and WORLD_SIZE", .nodes = *nodes, .node = *node};
}

/// Lets the nodes meet on this host at a computed port, unless the user gives another place.
void meet_here(const Environment& environment, std::uint16_t port, NodeVariables& found) {
  if (!text_variable(environment, "MASTER_ADDR")) found.master = kHere;
  found.port = port_variable(environment, "MASTER_PORT").value_or(port);
}

/// The names of an MPI launcher's variables.
struct MpiNames {
  const char* launcher;
  const char* sign;
  const char* rank;
  const char* size;
  const char* local_size;
  std::array<const char*, 2> job;  // the first that is set
};

/// If all processes are on one host, they meet there. Their parent is the same process then.
std::optional<NodeVariables> mpi_row(const MpiNames& names,
                                     const Environment& environment,
                                     const Process& process) {
  if (!environment(names.sign)) return std::nullopt;
  const auto node = number_variable(environment, names.rank);
  const auto nodes = number_variable(environment, names.size);
  if (!node || !nodes) return std::nullopt;
  check_range(*node, *nodes, "nodes");
  check_is_no_singleton(environment, nodes->value, nodes->origin);
  NodeVariables found{.launcher = names.launcher, .nodes = *nodes, .node = *node};
  for (const char* const job : names.job) {
    if (found.job.empty()) found.job = text_variable(environment, job).value_or("");
  }
  const auto local = number_variable(environment, names.local_size);
  if (local && local->value == nodes->value) {
    if (found.job.empty()) found.job = fmt::format("mpi-{}", process.parent);
    meet_here(environment, port_of(found.job), found);
  }
  return found;
}

std::optional<NodeVariables> open_mpi_row(const Environment& environment, const Process& process) {
  return mpi_row({.launcher = "Open MPI",
                  .sign = "OMPI_COMM_WORLD_RANK",
                  .rank = "OMPI_COMM_WORLD_RANK",
                  .size = "OMPI_COMM_WORLD_SIZE",
                  .local_size = "OMPI_COMM_WORLD_LOCAL_SIZE",
                  .job = {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}},
                 environment,
                 process);
}

/// Hydra and others that set PMI's variables. `sign`: a variable that only this launcher sets.
std::optional<NodeVariables> pmi_row_of(const char* launcher,
                                        const char* sign,
                                        const Environment& environment,
                                        const Process& process) {
  return mpi_row({.launcher = launcher,
                  .sign = sign,
                  .rank = "PMI_RANK",
                  .size = "PMI_SIZE",
                  .local_size = "MPI_LOCALNRANKS",
                  .job = {"PMIX_NAMESPACE", "PMI_JOBID"}},
                 environment,
                 process);
}

std::optional<NodeVariables> hydra_row(const Environment& environment, const Process& process) {
  return pmi_row_of("MPICH", "MPI_LOCALRANKID", environment, process);
}

std::optional<NodeVariables> pmi_row(const Environment& environment, const Process& process) {
  return pmi_row_of("PMI", "PMI_RANK", environment, process);
}

std::optional<NodeVariables> slurm_row(const Environment& environment, const Process&) {
  const auto tasks = tasks_of_step(environment);
  const auto node = number_variable(environment, "SLURM_PROCID");
  if (!tasks || !node) return std::nullopt;
  const Number nodes{*tasks, fmt::format("{} tasks of srun", *tasks)};
  check_range(*node, nodes, "tasks");
  NodeVariables found{.launcher = "srun",
                      .nodes = nodes,
                      .node = *node,
                      .job = fmt::format("slurm-{}.{}",
                                         environment("SLURM_JOB_ID").value_or(""),
                                         environment("SLURM_STEP_ID").value_or(""))};
  const std::uint16_t port = port_of_step(environment).value_or(kDefaultMasterPort);
  if (environment("SLURM_STEP_NUM_NODES") == "1") {
    meet_here(environment, port, found);
  } else {
    found.port = port_variable(environment, "MASTER_PORT").value_or(port);
  }
  return found;
}

/// In the order of the table in the header. Of mpirun and srun, the inner launcher comes first.
constexpr std::array<Row, 9> kRows = {torchrun_row,
                                      managed_row,
                                      dstack_row,
                                      skypilot_row,
                                      cluster_row,
                                      open_mpi_row,
                                      hydra_row,
                                      slurm_row,
                                      pmi_row};

/// Whether the variables are those of a rank, whose launcher has started it for each rank. The only
/// rank on a node of a submitted job counts as a node, because its script may call `peal run`.
bool is_inside_a_rank(const Environment& environment) {
  if (environment("TORCHELASTIC_RUN_ID") || environment(kElasticWorkerVariable)) return true;
  if (environment(kLaunchMark)) return !environment(kNodeMark);
  return environment("RANK") && environment("LOCAL_RANK") && environment("LOCAL_WORLD_SIZE") != "1";
}

std::optional<NodeVariables> ask_launchers(const Environment& environment, const Process& process) {
  for (const Row row : kRows) {
    if (auto found = row(environment, process)) return found;
  }
  const auto nodes = number_variable(environment, "WORLD_SIZE");
  if (!nodes || nodes->value == 1) return std::nullopt;
  throw Error(ErrorKind::kUsage,
              fmt::format("{} is set, but RANK is not: set RANK to the number of this node, 0 to "
                          "{}, or give --standalone to start ranks on this machine only",
                          nodes->origin,
                          nodes->value - 1));
}

Number node_by_options(const NodeOptions& options,
                       const Number& nodes,
                       const std::optional<NodeVariables>& launcher) {
  if (options.node) return {*options.node, fmt::format("--node-rank {}", *options.node)};
  if (nodes.value == 1) return {0, nodes.origin};
  if (launcher && launcher->nodes.value == nodes.value) return launcher->node;
  throw Error(ErrorKind::kUsage,
              fmt::format("{}: which of the nodes is this? Give --node-rank, 0 to {}",
                          nodes.origin,
                          nodes.value - 1));
}

/// The values of the launcher, overridden by the options.
std::optional<NodeVariables> with_options(const NodeOptions& options,
                                          std::optional<NodeVariables> launcher) {
  if (options.nodes) {
    const Number nodes{*options.nodes, fmt::format("--nnodes {}", *options.nodes)};
    const Number node = node_by_options(options, nodes, launcher);
    if (!launcher || launcher->nodes.value != nodes.value) {
      launcher = NodeVariables{.launcher = nodes.origin, .nodes = nodes, .node = node};
    }
    launcher->node = node;
  } else if (options.node) {
    if (!launcher) {
      throw Error(
          ErrorKind::kUsage,
          fmt::format("--node-rank {} needs the number of nodes: give --nnodes", *options.node));
    }
    launcher->node = {*options.node, fmt::format("--node-rank {}", *options.node)};
  }
  if (launcher) check_range(launcher->node, launcher->nodes, "nodes");
  return launcher;
}

/// The place where the nodes meet, from the options, the launcher, or further variables.
void set_meeting(const NodeOptions& options,
                 const NodeVariables& launcher,
                 const Environment& environment,
                 NodePlace& place) {
  place.master = options.master;
  place.port = options.port.value_or(0);
  const auto take = [&](const std::string& host, std::optional<std::uint16_t> port) {
    if (host.empty() || (!place.master.empty() && place.master != host)) return;
    place.master = host;
    if (place.port == 0) place.port = port.value_or(0);
  };
  take(launcher.master, launcher.port);
  take(text_variable(environment, "MASTER_ADDR").value_or(""),
       port_variable(environment, "MASTER_PORT"));
  if (place.master.empty()) {
    if (const auto spec = read_cluster_spec(environment)) take(spec->master, spec->port);
  }
  if (place.master.empty() && tasks_of_step(environment) == place.nodes) {
    take(first_node_of_step(environment).value_or(""), {});
  }
  if (place.port == 0) place.port = port_variable(environment, "MASTER_PORT").value_or(0);
  if (place.port == 0) place.port = launcher.port.value_or(kDefaultMasterPort);
}

}  // namespace

std::optional<NodePlace> read_node_place(const NodeOptions& options,
                                         const Environment& environment,
                                         const Process& process) {
  const Environment asked = is_inside_a_rank(environment) ? fixed_environment({}) : environment;
  const bool asks = !options.is_standalone && options.nodes != 1;
  const auto found = with_options(options, asks ? ask_launchers(asked, process) : std::nullopt);
  if (!found || found->nodes.value == 1) {
    if (!options.port) return std::nullopt;
    return NodePlace{.master = options.master, .port = *options.port};
  }
  NodePlace place{.nodes = found->nodes.value,
                  .node = found->node.value,
                  .job = options.job.empty() ? found->job : options.job,
                  .source = found->launcher};
  set_meeting(options, *found, asked, place);
  if (!place.master.empty()) return place;
  throw Error(ErrorKind::kUsage,
              fmt::format("this is node {} of {} ({}), and the host of node 0 is not known: set "
                          "MASTER_ADDR to its name or address on all nodes, or give --master-addr",
                          place.node,
                          place.nodes,
                          place.source));
}

}  // namespace peal::rendezvous
