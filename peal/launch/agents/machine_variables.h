// Which environment variables belong to a machine or to a login there, and not to a job. The
// launcher does not send these variables. Ranks on another host get the variables of that host.
#pragma once

#include <string_view>

#include "peal/launch/rank_command.h"

namespace peal::launch::agents {

/// True for HOME, USER, HOSTNAME, TMPDIR, DISPLAY, SSH_*, XDG_*, SLURM*, and others like these.
bool belongs_to_machine(std::string_view name);

/// The variables that belong to the machine, or all others.
enum class Part : unsigned char { kMachine, kJob };
Variables part_of(const Variables& variables, Part part);

/// Whether Slurm's variable describes the one task that runs the agent, such as SLURM_PROCID. Ranks
/// are other processes, and must not take it for their own.
bool describes_agents_task(std::string_view name);

/// Whether srun would read the variable as a limit for each of its tasks. The agent is one task,
/// but must get what the node has.
bool limits_each_task(std::string_view name);

}  // namespace peal::launch::agents
