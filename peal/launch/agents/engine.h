// How the launcher reaches a host. Here an engine is a command that runs another command on a host
// and carries the standard input and output of that command: ssh, srun inside an allocation of
// Slurm, or mpirun. Pure functions. Called by agent_host.cpp.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "peal/launch/agents/agent_protocol.h"

namespace peal::launch::agents {

enum class Engine : unsigned char {
  kThisMachine,  // the agent is a child of the launcher
  kSsh,          // OpenSSH's client, with the user's configuration
  kSlurm,        // srun in the allocation in which the launcher runs
  kMpi,          // mpirun of Open MPI or MPICH, with the user's configuration
};

/// "ssh", "srun", "mpirun", "the agent"
std::string_view program_of(Engine engine);

struct EngineOptions {
  Engine engine = Engine::kSsh;
  std::string peal;                       // the path of the program peal on the hosts
  std::vector<std::string> options = {};  // for the engine's command, such as -p 2222
  /// kSlurm: the component of each host in a heterogeneous job.
  std::map<std::string, int> components = {};
  friend bool operator==(const EngineOptions&, const EngineOptions&) = default;
};

/// How an agent that this engine starts learns addresses.
AddressSource addresses_of(Engine engine);

/// The command that starts an agent on the host.
std::vector<std::string> agent_command(const EngineOptions& options, const std::string& host);

/// Why this mpirun cannot start agents; empty if it can. `version`: what `mpirun --version` prints.
std::string mpirun_problem(std::string_view version);

/// The last line of the output, for errors: ": srun: step creation temporarily disabled". Empty if
/// there is no output.
std::string last_words(const std::string& output);

/// Why no agent will answer, although the engine's command still runs: mpirun of MPICH waits
/// forever for a host that ssh cannot reach. Empty if the output, which is the stderr of the
/// command, does not say so.
std::string problem_before_the_end(Engine engine, const std::string& output);

/// Why no agent answered, and what to do. `status`: of the engine's command, as waitpid(2) gives
/// it. `output`: the stderr of the command. `peal`: as in EngineOptions.
std::string start_problem(const EngineOptions& options, int status, const std::string& output);

}  // namespace peal::launch::agents
