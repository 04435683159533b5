// Which node of a job this machine is, for a `peal run` that another launcher has started on each
// node: a managed service, Kubernetes, srun, mpirun, or a user. Used by the program `peal run`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "peal/config/environment.h"
#include "peal/rendezvous/node_place.h"
#include "peal/rendezvous/store_location.h"

namespace peal::rendezvous {

/// The options of `peal run` about nodes, with torchrun's names. Nothing, or empty: not given.
struct NodeOptions {
  std::optional<int> nodes{};           // --nnodes
  std::optional<int> node{};            // --node-rank
  std::string master{};                 // --master-addr, or the host of --rdzv-endpoint
  std::optional<std::uint16_t> port{};  // --master-port, or the port of --rdzv-endpoint
  std::string job{};                    // --rdzv-id
  bool is_standalone = false;           // --standalone
};

/// Finds the place of this node. Pure. Options come first. For values that the options do not give,
/// the first of these launchers counts whose variables are set:
///
///   | launcher | variables |
///   |---|---|
///   | torchrun's variables, as Kubeflow sets them | PET_NNODES, PET_NODE_RANK, PET_MASTER_ADDR |
///   | a managed service, or a user | RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT |
///   | dstack | DSTACK_NODES_NUM, DSTACK_NODE_RANK, DSTACK_MASTER_NODE_IP |
///   | SkyPilot | SKYPILOT_NUM_NODES, SKYPILOT_NODE_RANK, SKYPILOT_NODE_IPS |
///   | a service that sets TensorFlow's variables | CLUSTER_SPEC or TF_CONFIG |
///   | mpirun of Open MPI | OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE |
///   | mpirun of MPICH, and other users of Hydra | PMI_RANK, PMI_SIZE |
///   | srun | SLURM_PROCID, SLURM_STEP_NUM_TASKS |
///
/// PET_NNODES comes before WORLD_SIZE, because Kubeflow's PyTorchJob counts processes in
/// WORLD_SIZE. If a launcher gives no address or port, MASTER_ADDR and MASTER_PORT count. The
/// default port is 29500; under Slurm and under mpirun on one host, it is computed from the job.
///
/// Inside a rank, only the options count, because `peal run` starts a job of its own there. This is
/// so inside a rank of `peal run` or torchrun, and of a launcher that sets RANK and LOCAL_RANK,
/// unless LOCAL_WORLD_SIZE is 1.
///
/// Returns nothing if this is a job of one node, and the options name no port.
/// Errors: usage; the text names the variable or the option: a wrong, missing or contradicting
///   value, or several nodes without a known master.
std::optional<NodePlace> read_node_place(const NodeOptions& options,
                                         const Environment& environment,
                                         const Process& process);

}  // namespace peal::rendezvous
