// Where the ranks of a job meet. Each rank decides from its own settings, and all ranks must come
// to the same place. Used by `meet`.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <variant>

#include "peal/config/environment.h"
#include "peal/rendezvous/launcher_environment.h"
#include "peal/rendezvous/url.h"

namespace peal::rendezvous {

/// For a group of one rank.
struct NoStore {
  friend bool operator==(const NoStore&, const NoStore&) = default;
};
/// A store that rank 0 serves at a port.
struct StoreAtPort {
  std::string host;
  std::uint16_t port = 0;
  friend bool operator==(const StoreAtPort&, const StoreAtPort&) = default;
};
/// A store that rank 0 serves at an abstract unix socket, for ranks that are all on one machine.
struct StoreAtSocket {
  std::string name;
  /// For errors: the "host:port" that the user has given for this meeting. Empty: none.
  std::string given{};
  friend bool operator==(const StoreAtSocket&, const StoreAtSocket&) = default;
};
/// A store in a file.
struct StoreInFile {
  std::string path;
  friend bool operator==(const StoreInFile&, const StoreInFile&) = default;
};

using StoreLocation = std::variant<NoStore, StoreAtPort, StoreAtSocket, StoreInFile>;

/// What a process knows about itself without the environment.
struct Process {
  uid_t user = 0;
  pid_t parent = 0;
};

/// Pure. A group of one meets nowhere. tcp:// and file:// name the place. For env:// the first of
/// these that applies counts:
///   1. MASTER_ADDR and MASTER_PORT. PEAL_MASTER_PORT, if it is set, replaces MASTER_PORT. Under
///      torchrun, whose own store holds MASTER_PORT, the default is the next port.
///   2. A local place named after the job, if the launcher has put all ranks on this machine.
///      This comes before 1 under torchrun and where PEAL_JOB is set (as by peal run), unless
///      PEAL_MASTER_PORT is set.
///   3. Under Slurm, the first node of the step, at a port computed from the job's number.
///   4. The first node by the variables of a launcher that starts one process on each node.
/// Errors: usage, which names the variables to set.
StoreLocation choose_place(const Url& url,
                           const LauncherEnvironment& launch,
                           const Environment& environment,
                           const Process& process);

}  // namespace peal::rendezvous
