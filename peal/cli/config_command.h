// `peal config`: shows the environment variables that peal reads, with their values. Also checks
// the environment for `peal run` and `peal bench`.
#pragma once

#include <string>

#include "peal/config/config.h"
#include "peal/launch/rank_command.h"

namespace peal::cli {

/// Prints the tables of config/config.h with the values in `variables`, the wrong values, and the
/// unknown names. Returns the exit code: 2 if a value is wrong.
int show_config(const launch::Variables& variables);

/// Prints the rows that choose algorithms, the user's rows first, in the form of PEAL_TUNE. Returns
/// the exit code: 2 if a value is wrong.
int show_choices(const launch::Variables& variables);

/// The configuration from `variables`.
/// Errors: usage, which names all wrong values, including wrong names of algorithms, which a rank
///   would notice only when it connects to its peers.
Config checked_config(const launch::Variables& variables);

/// One line that warns of the names in `variables` that begin with PEAL_ and that peal does not
/// read; empty if all names are known.
std::string warn_of_unknown(const launch::Variables& variables);

}  // namespace peal::cli
