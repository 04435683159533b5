// The main function of a worker process: follows commands until the coordinator closes the
// connection. The program `peal` starts it by a hidden command.
#pragma once

#include <string>
#include <vector>

namespace peal::bench {

/// The hidden command. Its arguments: KIND BACKEND SOCKET FLAGS spin|yield RANK RANKS, and one more
/// for some kinds. The worker reports BACKEND as its name.
inline constexpr const char* kWorkerCommand = "bench-worker";

/// Returns the exit code. `arguments`: those after the command.
/// Errors: usage; errors of the backend before the first command.
int work(const std::vector<std::string>& arguments);

}  // namespace peal::bench
