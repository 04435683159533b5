// A rank that runs a script, for tests.
#pragma once

#include <string>

#include "peal/launch/rank_command.h"

namespace peal::launch {

inline RankCommand shell_rank(Rank rank, const std::string& script) {
  return {.rank = rank,
          .program = "/bin/sh",
          .arguments = {"sh", "-c", script},
          .environment = process_variables(),
          .cpus = {}};
}

}  // namespace peal::launch
