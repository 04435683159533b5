// Runs short programs and returns their output: compilers, `ip`, Python.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "peal/base/clock.h"

namespace peal::bench {

struct Finished {
  int status = 0;      // as in a shell: the exit code, or 128 + signal; 127: cannot be executed
  std::string output;  // stdout and stderr together
};

/// Runs `words`, with the program from PATH, and waits for its end. At the deadline, kills the
/// program. Its stdin is empty. The program inherits the blocked signals, so that Ctrl-C does not
/// interrupt the removal of a run's hosts. Errors: resource.
Finished run_program(const std::vector<std::string>& words, Deadline deadline);

/// The path of the program in PATH, if it is there.
std::optional<std::string> find_program(const std::string& name);

}  // namespace peal::bench
