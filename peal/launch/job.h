// What all ranks of one launch share. Made by the program, given to `plan_ranks`.
#pragma once

#include <cstdint>
#include <string>

#include "peal/base/fd.h"
#include "peal/base/secret.h"

namespace peal::launch {

struct Job {
  std::string id{};        // PEAL_JOB: tells jobs on one machine apart
  Secret secret{};         // PEAL_SECRET, where the user set none
  std::uint16_t port = 0;  // MASTER_PORT, free on this machine
  std::string flights{};   // PEAL_FLIGHT_DIR, where the user set none; empty: none
  int terminal_width = 0;  // PEAL_TERMINAL_WIDTH: columns for a rank's line; 0: no terminal
  friend bool operator==(const Job&, const Job&) = default;
};

/// A job and what keeps its port for it.
struct NewJob {
  Job job;
  Fd port;
};

/// Random id and secret, a free port of 127.0.0.1. Errors: resource.
NewJob make_job();

}  // namespace peal::launch
