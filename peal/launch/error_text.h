// The errors that ranks have printed before they ended. Used by the report of a failed launch.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "peal/launch/process_end.h"

namespace peal::launch {

/// The line of the C++ runtime about an exception that no handler has caught, before its type.
inline constexpr std::string_view kUncaughtException =
    "terminate called after throwing an instance of '";

/// The error in the last lines of a rank: the last traceback of Python, with the exceptions that
/// caused it, or the text of an uncaught C++ exception; to the last line. Empty: no such error.
/// Of a traceback that is longer than `lines`, the lines that remain.
std::vector<std::string> error_in(std::span<const std::string> lines);

/// Whether two errors differ only in words with digits, which differ between ranks: numbers,
/// addresses, pids, ports, times, hashes, "[rank3]". The places in the code must be equal.
bool is_same_error(std::span<const std::string> a, std::span<const std::string> b);

/// The last lines of `main`, and the errors of `others` that are different. Ranks with the same
/// error are named together, and the error is shown once. A bounded number of lines.
std::string describe_errors(const ProcessEnd& main, std::span<const ProcessEnd> others);

}  // namespace peal::launch
