// The descriptors 0 to 2. Called by programs and functions that start processes.
#pragma once

namespace peal {

/// If a standard descriptor is closed, opens /dev/null in its place, so that no pipe gets its
/// number.
void open_standard_files() noexcept;

}  // namespace peal
