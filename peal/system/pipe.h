// A pipe whose ends close themselves. Programs that this process starts do not inherit the ends.
#pragma once

#include <optional>

#include "peal/system/fd.h"

namespace peal {

struct Pipe {
  Fd reader;
  Fd writer;
};

/// Errors: resource.
Pipe make_pipe();
/// The same, but returns nothing and sets errno on failure.
std::optional<Pipe> try_make_pipe();

}  // namespace peal
