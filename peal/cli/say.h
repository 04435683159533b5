// Writes to stderr for the program.
#pragma once

#include <string_view>

namespace peal::cli {

/// Ignores a failed write: a log on a full disk is not a reason to fail.
void say(std::string_view text);

}  // namespace peal::cli
