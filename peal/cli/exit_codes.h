// The exit codes of the program `peal`, except those that it passes on from the ranks.
#pragma once

namespace peal::cli {

inline constexpr int kFailure = 1;
inline constexpr int kUsage = 2;

}  // namespace peal::cli
