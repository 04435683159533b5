// The failures that a run of `peal run` rehearses: read from --inject, checked before anything
// starts, and told to whoever looks on. run_command.cpp calls it.
#pragma once

#include <string>

#include "peal/launch/rank_process.h"

namespace peal::cli {

/// The value of PEAL_INJECT for the ranks: the faults in a file, in one line. Errors: usage, which
/// names the file and what is wrong in it.
std::string read_faults(const std::string& path);

/// A line for each fault in the PEAL_INJECT of `variables`, which are the ranks'; empty where there
/// are none. Errors: usage, where PEAL_INJECT is wrong, names a rank that is not there, or breaks
/// links without PEAL_TRANSPORT=tcp, as the ranks of one host share memory otherwise.
std::string announce_faults(const launch::Variables& variables, int ranks);

}  // namespace peal::cli
