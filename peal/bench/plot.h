// Results as one SVG page, which needs nothing else. Pure. Written by `peal bench --plot`.
#pragma once

#include <string>
#include <vector>

#include "peal/bench/result.h"

namespace peal::bench {

/// A row for each operation, type and number of ranks: the time over the bytes, and the bus
/// bandwidth over the bytes. A line for each backend and its way, with the range of its rounds as a
/// band. Cases of 0 bytes are left out.
std::string draw(const std::vector<Result>& results);

}  // namespace peal::bench
