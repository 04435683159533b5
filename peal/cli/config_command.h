// `peal config`: the environment variables that peal reads, with what they are set to; and what is
// wrong with the environment, for `peal run` too.
#pragma once

#include <string>

#include "peal/base/config.h"
#include "peal/launch/rank_process.h"

namespace peal::cli {

/// Prints the tables of base/config.h, with the values in `variables`, those that are wrong, and
/// the names that nothing reads. Returns the exit code: 2 when a value is wrong.
int show_config(const launch::Variables& variables);

/// Prints the rows by which algorithms are chosen, the user's first, in the form that PEAL_TUNE
/// takes. Returns the exit code: 2 when a value is wrong.
int show_choices(const launch::Variables& variables);

/// What `variables` say. Throws Error(usage) that names all those that are wrong, with the names of
/// algorithms, which a rank would find when it meets the others.
Config checked_config(const launch::Variables& variables);

/// One line that warns of the names in `variables` that begin with PEAL_ and that nothing reads;
/// empty where there are none.
std::string warn_of_unknown(const launch::Variables& variables);

}  // namespace peal::cli
