// Finds the program to start before anything is started, so that a misspelt name is one error and
// not one per rank. Called by the launcher.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace peal::launch {

/// Where a command is, or why it cannot run.
struct CommandLookup {
  std::string path{};     // empty when it cannot run
  int exit_code = 0;      // what a shell gives: 127 not found, 126 not executable
  std::string problem{};  // a sentence that says what to do
};

/// As execvp(3): a name with a slash is a path, any other is looked for in the directories of
/// `search_path` (the value of PATH).
CommandLookup find_command(const std::string& name, std::string_view search_path);

/// The command as it is started: a Python script (*.py) that is not executable is python3's. Others
/// are left as they are.
std::vector<std::string> with_interpreter(std::vector<std::string> command);

}  // namespace peal::launch
