// Writes to stderr for the program.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace peal::cli {

/// Ignores a failed write: a log on a full disk is not a reason to fail.
void say(std::string_view text);

/// A line for each: "peal: <notice>".
void say_notices(std::span<const std::string> notices);

}  // namespace peal::cli
