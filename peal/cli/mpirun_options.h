// Options of mpirun that are not options of `peal run`. Some have no effect. The others cause an
// error, which says what to use instead.
#pragma once

#include <CLI/CLI.hpp>

namespace peal::cli {

/// Declares the options. Their callbacks throw Error(usage).
void add_mpirun_options(CLI::App& command);

}  // namespace peal::cli
