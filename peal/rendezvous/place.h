// Where the ranks of a job meet, decided from what each of them knows alone: all ranks must come to
// the same place. Used by `meet`.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <variant>

#include "peal/base/environment.h"
#include "peal/rendezvous/launch.h"
#include "peal/rendezvous/url.h"

namespace peal::rendezvous {

/// Nobody else is there.
struct NoPlace {
  friend bool operator==(const NoPlace&, const NoPlace&) = default;
};
/// A store that rank 0 serves at a port.
struct PortPlace {
  std::string host;
  std::uint16_t port = 0;
  friend bool operator==(const PortPlace&, const PortPlace&) = default;
};
/// A store that rank 0 serves at an abstract unix socket: all ranks are on one machine.
struct LocalPlace {
  std::string name;
  friend bool operator==(const LocalPlace&, const LocalPlace&) = default;
};
/// A store in a file.
struct FilePlace {
  std::string path;
  friend bool operator==(const FilePlace&, const FilePlace&) = default;
};

using Place = std::variant<NoPlace, PortPlace, LocalPlace, FilePlace>;

/// What a process knows of itself without asking the environment.
struct Process {
  uid_t user = 0;
  pid_t parent = 0;
};

/// Pure. A group of one meets nowhere. tcp:// and file:// say the place; env:// finds it so:
///   1. MASTER_ADDR and MASTER_PORT, but under torchrun, whose own store holds that port:
///      PEAL_MASTER_PORT or the port above it. (PEAL_MASTER_PORT comes before MASTER_PORT
///      anywhere.)
///   2. a launcher that has put all ranks on this machine: a local place named after the job
///      (torchrun, and where PEAL_JOB is set, as by peal run: this before 1, unless
///      PEAL_MASTER_PORT is set).
///   3. Slurm: the first node of the step, at a port made of the job's number.
/// Errors: usage, which names the variables to set.
Place choose_place(const Url& url,
                   const Launch& launch,
                   const Environment& environment,
                   const Process& process);

}  // namespace peal::rendezvous
