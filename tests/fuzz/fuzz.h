// What the fuzz targets share. A target is one file that defines `check`; it is linked with
// libFuzzer in the fuzz preset, and elsewhere with replay.cpp, which feeds it its corpus.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "peal/base/error.h"

namespace peal::fuzz {

/// The property of the target, for any bytes. Defined by the target; fails by `require`, by an
/// exception, or by what the sanitizers find.
void check(std::string_view input);

/// Prints what does not hold, and aborts.
void require(bool holds, std::string_view what);

/// What `parse` returns, or nothing if it refuses the input with this kind of error.
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
