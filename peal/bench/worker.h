// The inside of a worker process: takes commands until its coordinator is gone. Started by the
// program `peal` with a hidden command.
#pragma once

#include <string>
#include <vector>

namespace peal::bench {

/// The hidden command, and its arguments: KIND BACKEND SOCKET FLAGS spin|yield RANK RANKS, and for
/// some kinds one more. BACKEND is the name that the worker calls itself by.
inline constexpr const char* kWorkerCommand = "bench-worker";

/// Returns the exit code. `arguments`: those after the command.
/// Errors: usage; of what is measured, before the first command.
int work(const std::vector<std::string>& arguments);

}  // namespace peal::bench
