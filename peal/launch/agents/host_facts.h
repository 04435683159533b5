// The facts that an agent collects about its host before ranks start. Called by agent.cpp.
#pragma once

#include <string>

#include "peal/launch/agents/agent_protocol.h"
#include "peal/launch/rank_command.h"

namespace peal::launch::agents {

/// Whether the command can run here, the cores, the variables that belong to this machine, and the
/// addresses that the engine has put into the agent's own environment `own`. The port and the
/// folder for records are left empty.
Ready host_facts(const Begin& begin, const Variables& own);

/// The addresses in SSH_CONNECTION, "client port server port": of the launcher as this host sees
/// it, and of this host as the launcher reaches it. Empty if the text is not of this form.
struct SshAddresses {
  std::string launcher;
  std::string host;
};
SshAddresses parse_ssh_connection(const std::string& text);

}  // namespace peal::launch::agents
