// Finds the program of an engine on this machine, before it starts an agent. Called by
// agent_host.cpp and by the runners of `peal submit`.
#pragma once

#include <string>

#include "peal/launch/agents/engine.h"

namespace peal::launch::agents {

/// The path of the program, or why this machine cannot start agents by it.
struct EngineProgram {
  std::string path{};     // empty if there is a problem
  std::string problem{};  // a sentence that tells the user what to do; the same for every host
};

/// Searches PATH. Asks each mpirun for its version once, because a job may have many hosts.
/// Threads: one, as for Agents.
EngineProgram find_engine_program(const EngineOptions& options);

}  // namespace peal::launch::agents
