// The values that all ranks of one launch share. Made by the program, given to `plan_ranks`.
#pragma once

#include <cstdint>
#include <string>

#include "peal/base/secret.h"
#include "peal/system/fd.h"

namespace peal::launch {

struct JobContext {
  std::string id{};                   // PEAL_JOB: distinguishes jobs on one machine
  Secret secret{};                    // PEAL_SECRET, unless the user set one
  std::string address = "127.0.0.1";  // MASTER_ADDR
  std::uint16_t port = 0;             // MASTER_PORT, free at this address
  std::string flights{};              // PEAL_FLIGHT_DIR, unless the user set one; empty: no folder
  int terminal_width = 0;  // PEAL_TERMINAL_WIDTH: columns for a rank's line; 0: no terminal
  friend bool operator==(const JobContext&, const JobContext&) = default;
};

/// The values of a job, and the socket that reserves its port.
struct NewJobContext {
  JobContext job;
  Fd port;
};

/// Makes the values of a job, with a random id and secret and a free port of 127.0.0.1. Errors:
/// resource.
NewJobContext make_job_context();

}  // namespace peal::launch
