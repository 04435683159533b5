// The number of ranks on the command line of `peal run`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "peal/base/count_range.h"
#include "peal/base/error.h"
#include "peal/config/environment.h"
#include "peal/launch/wording.h"

namespace peal::cli {

/// The number of ranks that -n or PET_NPROC_PER_NODE asks for: a number, "cpu" (the cores that this
/// process may use), "gpu" (the GPUs of this machine), or "auto" (the GPUs if there are any, else
/// the cores). `source`: "-n". Errors: usage.
int parse_rank_count(const std::string& text, const std::string& source);

/// The number in PET_NPROC_PER_NODE, torchrun's variable for -n; nothing if it is not set.
/// Errors: usage.
std::optional<int> count_in(const Environment& environment);

/// The numbers in -n 2:4: an elastic job. Nothing if -n has no range. Errors: usage.
std::optional<CountRange> parse_range(const std::vector<std::string>& counts,
                                      const launch::Wording& wording);

/// The value of -n; nothing if `counts`, all values that -n has, is empty, or has a range.
/// Errors: usage.
std::optional<int> parse_count(const std::vector<std::string>& counts,
                               const launch::Wording& wording);

/// The error that -n is missing. `command`: the user may have put -n behind its first word.
Error missing_count(const std::vector<std::string>& command, const launch::Wording& wording);

}  // namespace peal::cli
