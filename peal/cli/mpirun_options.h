// Options that people know from mpirun, besides those that `peal run` has anyway: some have no
// effect, and the others are an error that says what to use instead.
#pragma once

#include <CLI/CLI.hpp>

namespace peal::cli {

/// Declares the options. Their callbacks throw Error(usage).
void add_mpirun_options(CLI::App& command);

}  // namespace peal::cli
