// The failures that a run of `peal run` rehearses: read from --inject, checked before anything
// starts, and told to whoever looks on. run_command.cpp calls it.
#pragma once

#include <span>
#include <string>

#include "peal/launch/rank_process.h"
#include "peal/launch/report.h"

namespace peal::cli {

/// The value of PEAL_INJECT for the ranks: the faults in a file, in one line. Errors: usage, which
/// names the file and what is wrong in it.
std::string read_faults(const std::string& path);

/// A line for each fault in the PEAL_INJECT of `variables`, which are the ranks'; empty where there
/// are none. Errors: usage, where PEAL_INJECT is wrong, names a rank that is not there, or breaks
/// links without PEAL_TRANSPORT=tcp, as the ranks of one host share memory otherwise.
std::string announce_faults(const launch::Variables& variables, int ranks);

/// And a line for each that was to kill its rank, and did not, as the rank had ended before: a
/// rehearsal that did not take place must not pass for one that went well. Of a freeze nothing can
/// be seen from here. (The library warns of any fault of a rank, where the program has it report
/// and ends its group in order: a program may do neither.)
std::string tell_missed_faults(const launch::Variables& variables,
                               std::span<const launch::ProcessEnd> ends);

}  // namespace peal::cli
