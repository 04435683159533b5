// Which ranks of a job that left no end are still there: asked by why_command.cpp, of a job that
// runs on this machine or stands still.
#pragma once

#include <span>
#include <string>

#include "peal/observe/dump.h"

namespace peal::cli {

/// Adds an end that is none (kRuns, kStandsStill) for each rank without one whose process still has
/// its record mapped, among the records that the paths lead to. Others may be on another machine,
/// or have ended: of them nothing is said.
void add_running(std::span<const std::string> paths, observe::Dump& dump);

}  // namespace peal::cli
