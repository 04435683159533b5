// The timeout of operations whose other side may come after hours.
#pragma once

#include <chrono>

#include "peal/base/clock.h"

namespace peal::named {

/// The other ranks may compute for hours before they enter a round or ask a question. A rank that
/// is lost ends the wait nevertheless.
inline constexpr Timeout kUnlimited = std::chrono::hours(24 * 365);

}  // namespace peal::named
