#pragma once

#include <chrono>

#include "peal/base/clock.h"

namespace peal {

/// The deadline of a test's step that takes moments: only a hang reaches it.
inline Deadline soon() { return Deadline::after(std::chrono::seconds(60)); }

}  // namespace peal
