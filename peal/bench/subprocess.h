// Short programs whose output is wanted: compilers, `ip`, and questions to an interpreter.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "peal/base/clock.h"

namespace peal::bench {

struct Finished {
  int status = 0;  // as a shell gives it: the exit code, or 128 + signal; 127: not to be executed
  std::string output;  // stdout and stderr together
};

/// Runs `words` (the program is looked for in PATH) and waits for its end; at the deadline it is
/// killed. Its stdin is empty; the signals that are blocked here are blocked there too, so that no
/// Ctrl-C breaks off what removes the hosts of a run. Errors: resource.
Finished run_program(const std::vector<std::string>& words, Deadline deadline);

/// Where PATH has a program of that name, if it has.
std::optional<std::string> find_program(const std::string& name);

}  // namespace peal::bench
