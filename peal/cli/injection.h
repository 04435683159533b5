// The failures that a run of `peal run` rehearses: read from --inject, checked before any rank
// starts, and reported to the user. run_command.cpp calls it.
#pragma once

#include <span>
#include <string>

#include "peal/launch/rank_command.h"
#include "peal/launch/report.h"

namespace peal::cli {

/// The value of PEAL_INJECT for the ranks: the faults of a file, in one line.
/// Errors: usage, which names the file and the wrong line.
std::string read_faults(const std::string& path);

/// A line for each fault in the PEAL_INJECT of `variables`, the environment of the ranks; empty
/// without faults.
/// Errors: usage, if PEAL_INJECT is malformed, names a missing rank, or breaks links without
///   PEAL_TRANSPORT=tcp, since ranks of one host share memory otherwise.
std::string announce_faults(const launch::Variables& variables, int ranks);

/// A line for each fault that should kill its rank: whether the fault killed the rank, or the rank
/// ended before. A rehearsal that did not happen must not look like a success. A missed freeze is
/// not visible here.
/// (The library also warns of a missed fault, but only if the program sets a report function and
/// ends its group without an error.)
std::string tell_faults(const launch::Variables& variables,
                        std::span<const launch::ProcessEnd> ends);

}  // namespace peal::cli
