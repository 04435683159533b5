// Finds the ranks without an end whose processes still exist: for why_command.cpp, for a job that
// runs or is stopped on this machine.
#pragma once

#include <span>
#include <string>

#include "peal/observe/dump.h"

namespace peal::cli {

/// Adds an entry to dump.ends (kRuns or kStopped) for each rank without one whose process still
/// maps its record, among the records at `paths`. Other ranks may be on another machine, or may
/// have ended: they get no entry.
void add_running(std::span<const std::string> paths, observe::Dump& dump);

}  // namespace peal::cli
