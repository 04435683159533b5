// The deadline that tests give to steps which must not hang.
#pragma once

#include <chrono>

#include "peal/base/clock.h"

namespace peal {

/// A minute from now. Only a hang reaches it, also on a busy machine.
inline Deadline soon() { return Deadline::after(std::chrono::seconds(60)); }

}  // namespace peal
