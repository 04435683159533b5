// How the launcher reaches a host. An engine is a command that runs another command on a host, and
// connects its standard input and output with it: ssh, or srun inside an allocation of Slurm. Pure
// functions. Called by agent_host.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace peal::launch::agents {

enum class Engine : unsigned char {
  kThisMachine,  // the agent is a child of the launcher
  kSsh,          // OpenSSH's client, with the user's configuration
  kSlurm,        // srun in the allocation in which the launcher runs
};

/// "ssh", "srun", "the agent"
std::string_view program_of(Engine engine);

struct EngineOptions {
  Engine engine = Engine::kSsh;
  std::string peal;                       // the path of the program peal on the hosts
  std::vector<std::string> options = {};  // for the engine's command, such as -p 2222
  friend bool operator==(const EngineOptions&, const EngineOptions&) = default;
};

/// The command that starts an agent on the host.
std::vector<std::string> agent_command(const EngineOptions& options, const std::string& host);

/// Why no agent answered, and what to do. `status`: of the engine's command, as waitpid(2) gives
/// it. `output`: what the command has written to stderr. `peal`: as in EngineOptions.
std::string start_problem(const EngineOptions& options, int status, const std::string& output);

}  // namespace peal::launch::agents
