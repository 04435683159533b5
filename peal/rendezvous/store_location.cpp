#include "peal/rendezvous/store_location.h"

#include <optional>

#include <fmt/format.h>

#include "peal/base/bracketed.h"
#include "peal/base/error.h"
#include "peal/base/fnv.h"
#include "peal/rendezvous/number_variable.h"
#include "peal/rendezvous/slurm_step.h"

namespace peal::rendezvous {
namespace {

/// Torchrun's store listens at MASTER_PORT, so peal's store cannot.
bool master_port_is_taken(const LauncherEnvironment& launch, const Environment& environment) {
  return launch.launcher == Launcher::kTorchrun &&
         environment("TORCHELASTIC_USE_AGENT_STORE") == "True";
}

std::optional<std::uint16_t> store_port(const LauncherEnvironment& launch,
                                        const Environment& environment) {
  if (const auto port = port_variable(environment, "PEAL_MASTER_PORT")) return port;
  const auto port = port_variable(environment, "MASTER_PORT");
  if (!port || !master_port_is_taken(launch, environment)) return port;
  return static_cast<std::uint16_t>(*port == 65535 ? *port - 1 : *port + 1);
}

/// The kernel limits names of unix sockets to 107 bytes.
std::string shortened(std::string name) {
  constexpr std::size_t kLongest = 80;
  if (name.size() <= kLongest) return name;
  return fmt::format("{}.{:x}", name.substr(0, kLongest), fnv(name));
}

/// "127.0.0.1:29501" if peal run is one of several nodes, whose user names the place.
std::string given_place(const Environment& environment) {
  const auto host = environment("MASTER_ADDR");
  const auto port = environment("MASTER_PORT");
  const auto nodes = environment("GROUP_WORLD_SIZE");
  if (!host || !port || !nodes || *nodes == "1") return "";
  return fmt::format("{}:{}", bracketed(*host), *port);
}

/// A name that only the ranks of this job use. Hydra gives its ranks no job name, so they use the
/// id of their common parent process.
std::optional<StoreAtSocket> local_place(const LauncherEnvironment& launch,
                                         const Environment& environment,
                                         const Process& process) {
  const Identity& self = launch.identity;
  const bool is_all_here = launch.local_is_known && self.local_world_size == self.world_size;
  // If a rank of peal run is given a wrong, larger world size, all ranks must still meet, because
  // only then do they find the disagreement.
  const bool is_alone_here =
      environment("PEAL_JOB").has_value() && environment("MASTER_ADDR") == "127.0.0.1";
  if (!is_all_here && !is_alone_here) return std::nullopt;
  if (!launch.job.empty()) {
    return StoreAtSocket{shortened(fmt::format("peal.{}.{}", process.user, launch.job)),
                         given_place(environment)};
  }
  if (launch.launcher != Launcher::kMpich) return std::nullopt;
  return StoreAtSocket{fmt::format("peal.{}.mpich.{}", process.user, process.parent)};
}

Error no_place(std::string_view missing, std::string_view also) {
  return Error(ErrorKind::kUsage,
               fmt::format("{} not set{}, and the ranks do not know where to meet: set MASTER_ADDR "
                           "to rank 0's machine and MASTER_PORT to a free port there, use "
                           "tcp://host:port or file:///path, or start the program with peal run",
                           missing,
                           also));
}

StoreLocation place_in(const LauncherEnvironment& launch,
                       const Environment& environment,
                       const Process& process) {
  const auto local = local_place(launch, environment, process);
  const bool is_free = !master_port_is_taken(launch, environment);
  const bool is_peals = environment("PEAL_JOB").has_value();
  if (local && (!is_free || is_peals) && !environment("PEAL_MASTER_PORT")) return *local;
  auto host = environment("MASTER_ADDR");
  auto port = store_port(launch, environment);
  if (!host && !port && local) return *local;
  if (launch.launcher == Launcher::kSlurm) {
    if (!host) host = first_node_of_step(environment);
    if (!port) port = port_of_step(environment);
  }
  if (!host && !launch.master.empty()) {
    host = launch.master;
    if (!port) port = launch.master_port;
  }
  if (host && host->empty()) throw no_place("MASTER_ADDR is empty, which counts as", "");
  if (!host && !port) throw no_place("MASTER_ADDR and MASTER_PORT are", "");
  if (!host) throw no_place("MASTER_ADDR is", " (MASTER_PORT is)");
  if (!port) throw no_place("MASTER_PORT is", " (MASTER_ADDR is)");
  return StoreAtPort{*host, *port};
}

}  // namespace

StoreLocation choose_place(const Url& url,
                           const LauncherEnvironment& launch,
                           const Environment& environment,
                           const Process& process) {
  if (launch.identity.world_size == 1) return NoStore{};
  if (const auto* tcp = std::get_if<TcpUrl>(&url.way)) return StoreAtPort{tcp->host, tcp->port};
  if (const auto* file = std::get_if<FileUrl>(&url.way)) return StoreInFile{file->path};
  return place_in(launch, environment, process);
}

}  // namespace peal::rendezvous
