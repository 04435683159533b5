// The deadline in tests for steps that must not hang.
#pragma once

#include <chrono>

#include "peal/base/clock.h"

namespace peal {

/// A minute from now. Only a hang reaches it, even on a busy machine.
inline Deadline soon() { return Deadline::after(std::chrono::seconds(60)); }

}  // namespace peal
