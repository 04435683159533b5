// The number of ranks on the command line of `peal run`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "peal/base/error.h"

namespace peal::cli {

/// The value of -n; nothing if `counts`, all values that -n has, is empty.
/// Errors: usage.
std::optional<int> parse_count(const std::vector<std::string>& counts);

/// The error that -n is missing. `command`: the user may have put -n behind its first word.
Error missing_count(const std::vector<std::string>& command);

}  // namespace peal::cli
