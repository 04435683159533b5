#include "peal/launch/agents/host_facts.h"

#include <array>
#include <cerrno>
#include <filesystem>
#include <sstream>
#include <system_error>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/launch/agents/machine_variables.h"
#include "peal/launch/command.h"
#include "peal/system/cpus.h"

namespace peal::launch::agents {
namespace {

constexpr int kCannotRun = 126;

std::string value(const Variables& variables, const std::string& name) {
  const auto found = variables.find(name);
  return found == variables.end() ? "" : found->second;
}

/// Finds the command as a shell of the rank would.
void find_program(const Begin& begin, Ready& ready) {
  ready.command = with_interpreter(begin.command);
  const std::string path = value(begin.environment, "PATH");
  const CommandLookup found =
      find_command(ready.command.front(), path.empty() ? "/usr/local/bin:/usr/bin:/bin" : path);
  ready.program = found.path;
  ready.exit_code = found.exit_code;
  ready.problem = found.problem;
}

}  // namespace

SshAddresses parse_ssh_connection(const std::string& text) {
  std::istringstream words(text);
  std::array<std::string, 4> parts;
  for (std::string& part : parts) words >> part;
  if (parts[3].empty()) return {};
  return {.launcher = parts[0], .host = parts[2]};
}

Ready host_facts(const Begin& begin, const Variables& own) {
  Ready ready;
  std::error_code error;
  if (!std::filesystem::equivalent(begin.directory, ".", error)) {
    ready.exit_code = kCannotRun;
    ready.problem = fmt::format("the folder {} is missing or cannot be entered{}",
                                begin.directory,
                                error ? ": " + error.message() : "");
  } else {
    find_program(begin, ready);
  }
  ready.own = part_of(own, Part::kMachine);
  try {
    ready.cores = usable_cores();
  } catch (const Error&) {
    // Without cores, ranks are not bound.
  }
  ready.quota = cpu_quota();
  if (begin.is_over_ssh) {
    const SshAddresses addresses = parse_ssh_connection(value(own, "SSH_CONNECTION"));
    ready.launcher_address = addresses.launcher;
    ready.address = addresses.host;
  }
  return ready;
}

}  // namespace peal::launch::agents
