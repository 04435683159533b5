// Which hosts an allocation of Slurm gives to `peal run`, and which program reaches the hosts: ssh,
// srun or mpirun. Used by run_command.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "peal/cli/horovod_settings.h"
#include "peal/launch/agents/engine.h"
#include "peal/launch/host_list.h"
#include "peal/rendezvous/slurm_allocation.h"

namespace peal::cli {

/// The value of --launcher: ssh, slurm or mpi. Nothing if it is empty. Errors: usage.
std::optional<launch::agents::Engine> parse_launcher(const std::string& text);

/// The slots of the nodes: the tasks that the user has asked for, or the CPUs if `ranks` is another
/// number. Errors: usage, if neither says how many ranks there are.
std::vector<launch::HostSlots> slots_of(const rendezvous::SlurmAllocation& allocation,
                                        std::optional<int> ranks);

/// For `ranks` on the nodes of the job. Errors: usage: more ranks than slots.
void check_room(const std::vector<launch::HostSlots>& hosts, int ranks);

/// Errors: usage: a host that is not a node of the job of Slurm in which this process runs.
void check_nodes_of_job(const std::vector<launch::HostSlots>& hosts);

/// Whether the ranks can start here, without srun. A shell of salloc may run on another machine.
bool is_only_node(const rendezvous::SlurmAllocation& allocation);

/// Errors: usage: --launcher without hosts.
void check_hosts_of_launcher(const std::string& launcher, bool has_hosts);

/// The options of the engine. `peal_path`: of the program peal on the hosts; empty: as here.
/// Errors: usage: an option of ssh for another program; Slurm's launcher outside of an allocation.
launch::agents::EngineOptions engine_options(launch::agents::Engine engine,
                                             const std::string& peal_path,
                                             const HorovodSettings& settings);

}  // namespace peal::cli
