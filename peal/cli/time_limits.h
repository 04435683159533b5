// The times of `peal run`: --timeout, --warn-before and --grace. Called by run_command.cpp.
#pragma once

#include <string>

#include "peal/launch/options.h"

namespace peal::cli {

/// The texts of the options, in seconds. Empty: not given.
struct TimeLimits {
  std::string timeout{};
  std::string warn_before{};
  std::string grace = "5";
};

/// If a warning is wanted, asks Slurm when it ends the job. Errors: usage.
void set_time_limits(const TimeLimits& given, launch::LaunchOptions& options);

}  // namespace peal::cli
