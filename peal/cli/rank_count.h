// The number of ranks on the command line of `peal run`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "peal/base/error.h"
#include "peal/launch/wording.h"

namespace peal::cli {

/// The value of -n; nothing if `counts`, all values that -n has, is empty.
/// Errors: usage.
std::optional<int> parse_count(const std::vector<std::string>& counts,
                               const launch::Wording& wording);

/// The error that -n is missing. `command`: the user may have put -n behind its first word.
Error missing_count(const std::vector<std::string>& command, const launch::Wording& wording);

}  // namespace peal::cli
