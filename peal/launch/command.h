// Finds the program before any process is started, so that a misspelt name gives one error and not
// one per rank. Called by the launcher.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "peal/launch/rank_command.h"

namespace peal::launch {

/// The path of a command, or the reason why it cannot run.
struct CommandLookup {
  std::string path{};     // empty when it cannot run
  int exit_code = 0;      // as a shell: 127 not found, 126 not executable
  std::string problem{};  // a sentence that tells the user what to do
};

/// Finds a command like execvp(3): a name with a slash is a path; any other name is searched in the
/// directories of `search_path` (the value of PATH).
CommandLookup find_command(const std::string& name, std::string_view search_path);

/// As above, with PATH of `environment`; without it /usr/bin and /bin.
CommandLookup find_command(const std::string& name, const Variables& environment);

/// Prefixes a Python script (*.py) that is not executable with python3. Returns any other command
/// unchanged.
std::vector<std::string> with_interpreter(std::vector<std::string> command);

}  // namespace peal::launch
