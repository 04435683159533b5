// The values that all ranks of one launch share. Made by the program, given to `plan_ranks`.
#pragma once

#include <cstdint>
#include <string>

#include "peal/base/secret.h"
#include "peal/rendezvous/node_place.h"
#include "peal/system/fd.h"

namespace peal::launch {

struct JobContext {
  std::string id{};                // PEAL_JOB: distinguishes jobs on one machine
  Secret secret{};                 // PEAL_SECRET, unless the user set one; empty: none
  std::string host = "127.0.0.1";  // MASTER_ADDR
  std::uint16_t port = 0;          // MASTER_PORT
  std::string flights{};           // PEAL_FLIGHT_DIR, unless the user set one; empty: no folder
  int terminal_width = 0;          // PEAL_TERMINAL_WIDTH: columns for a rank's line; 0: no terminal
  friend bool operator==(const JobContext&, const JobContext&) = default;
};

/// The values of a job, and the socket that reserves its port.
struct NewJobContext {
  JobContext job;
  Fd port;
};

/// Makes the values of a job on this machine, with a random id and secret and a free port of
/// 127.0.0.1. If `node` has a port, the job uses this port, and the port is not reserved.
/// On several nodes, each node makes the values, and all nodes must make the same values. So these
/// values contain no secret. The id is `given_id` if it is not empty. Otherwise the id is made of
/// the launcher's name for the job, the number of nodes and the port. Errors: resource.
NewJobContext make_job_context(const rendezvous::NodePlace& node = {},
                               const std::string& given_id = "");

}  // namespace peal::launch
