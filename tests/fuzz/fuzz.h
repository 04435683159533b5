// Common code of the fuzz targets. A target is one file that defines `check`. It is linked with
// libFuzzer in the fuzz preset, and otherwise with replay.cpp, which runs it over its corpus.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "peal/base/error.h"

namespace peal::fuzz {

/// The property of the target, for any bytes. Defined by the target; fails by `require`, by an
/// exception, or by a report of the sanitizers.
void check(std::string_view input);

/// If `holds` is false, prints `what` and aborts.
void require(bool holds, std::string_view what);

/// The result of `parse`, or nothing if it rejects the input with this kind of error.
template <class Parse>
auto unless_refused(ErrorKind kind, Parse parse) -> std::optional<decltype(parse())> {
  try {
    return parse();
  } catch (const Error& error) {
    require(error.kind() == kind, error.what());
    return std::nullopt;
  }
}

}  // namespace peal::fuzz
