// Checks the options before the command of `peal run`, so that each mistake has an error text that
// says what to do.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "peal/launch/wording.h"

namespace peal::cli {

/// Spells the options at the beginning of `arguments` as `command` declares them: `-np`,
/// `--nproc_per_node` and `-n=2` become `-n` and `-n2`, and long options with one hyphen get two.
/// Returns the number of these arguments, values included. They end before the first argument that
/// is neither an option nor an option's value, or before "--".
/// Errors: usage (an unknown option, a missing value, a value for a switch).
std::size_t spell_leading_options(const CLI::App& command,
                                  const launch::Wording& wording,
                                  std::vector<std::string>& arguments);

}  // namespace peal::cli
