// Writes to stderr for the program.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "peal/launch/signals.h"

namespace peal::cli {

/// Ignores a failed write: a log on a full disk is not a reason to fail.
void say(std::string_view text);

/// The same for a launcher, which has blocked its signals. While a signal is pending, drops the
/// rest of the text if the reader of stderr takes nothing for a second. Otherwise a stuck reader
/// would keep the signal from ending the launcher.
void say(std::string_view text, const launch::SignalReader& signals);

/// A line for each: "peal: <notice>".
void say_notices(std::span<const std::string> notices);

}  // namespace peal::cli
