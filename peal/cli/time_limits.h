// The times of `peal run`: --timeout, --warn-before and --grace. Called by run_command.cpp.
#pragma once

#include <string>

#include "peal/launch/options.h"

namespace peal::cli {

/// As given, in seconds. An empty text: not given.
struct TimeLimits {
  std::string timeout{};
  std::string warn_before{};
  std::string grace = "5";
};

/// For a warning, asks Slurm when it ends the job. Errors: usage.
void set_time_limits(const TimeLimits& given, launch::LaunchOptions& options);

}  // namespace peal::cli
