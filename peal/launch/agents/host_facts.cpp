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
#include "peal/launch/containers/engine_client.h"
#include "peal/net/socket.h"
#include "peal/system/cpus.h"

namespace peal::launch::agents {
namespace {

constexpr int kCannotRun = 126;

std::string value(const Variables& variables, const std::string& name) {
  const auto found = variables.find(name);
  return found == variables.end() ? "" : found->second;
}

/// Finds the commands as a shell of the rank would, up to the first that cannot run.
void find_programs(const Begin& begin, Ready& ready) {
  const std::string shared = value(begin.environment, "PATH");
  for (const WantedCommand& command : begin.commands) {
    FoundCommand found{.command = with_interpreter(command.words)};
    const std::string& path = command.path.empty() ? shared : command.path;
    const CommandLookup lookup =
        find_command(found.command.front(), path.empty() ? "/usr/local/bin:/usr/bin:/bin" : path);
    found.program = lookup.path;
    ready.commands.push_back(std::move(found));
    ready.exit_code = lookup.exit_code;
    ready.problem = lookup.problem;
    if (lookup.exit_code != 0) return;
  }
}

void find_containers(const Begin& begin, const Variables& own, Ready& ready) {
  if (begin.images.empty() || ready.exit_code != 0) return;
  const containers::FoundEngine found =
      containers::find_engine(begin.container_engine, begin.images, own);
  ready.container_engine = found.engine;
  ready.notice = found.notice;
  ready.problem = found.problem;
  if (!found.problem.empty()) ready.exit_code = kCannotRun;
}

void find_addresses(AddressSource source, const Variables& own, Ready& ready) {
  if (source == AddressSource::kSsh) {
    const SshAddresses addresses = parse_ssh_connection(value(own, "SSH_CONNECTION"));
    ready.launcher_address = addresses.launcher;
    ready.address = addresses.host;
  }
  if (source == AddressSource::kSlurm) {
    ready.launcher_address = value(own, "SLURM_LAUNCH_NODE_IPADDR");
    ready.address = net::own_address_towards(ready.launcher_address);
  }
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
  const bool needs_folder = !begin.commands.empty() || begin.has_files;
  if (needs_folder && !std::filesystem::equivalent(begin.directory, ".", error)) {
    ready.exit_code = kCannotRun;
    ready.problem = fmt::format("the folder {} is missing or cannot be entered{}",
                                begin.directory,
                                error ? ": " + error.message() : "");
  } else {
    find_programs(begin, ready);
    find_containers(begin, own, ready);
  }
  ready.own = part_of(own, Part::kMachine);
  if (begin.addresses == AddressSource::kSlurm) {
    std::erase_if(ready.own, [](const auto& entry) { return describes_agents_task(entry.first); });
  }
  try {
    ready.cores = usable_cores();
  } catch (const Error&) {
    // Without cores, ranks are not bound.
  }
  ready.quota = cpu_quota();
  find_addresses(begin.addresses, own, ready);
  return ready;
}

}  // namespace peal::launch::agents
