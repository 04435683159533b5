// Counts the calls of operator new of the whole program that links allocations.cpp.
#pragma once

#include <cstddef>

namespace peal::testing {

/// The number of blocks that this program has allocated by operator new, on all threads.
std::size_t allocations();

}  // namespace peal::testing
