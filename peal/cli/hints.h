// The error text for arguments that do not begin with a command of the program.
#pragma once

#include <string>
#include <vector>

namespace peal::cli {

/// A sentence that guesses what the user meant. `arguments`: all after "peal". `commands`: the
/// known commands, at least one.
std::string no_such_command(const std::vector<std::string>& arguments,
                            const std::vector<std::string>& commands);

}  // namespace peal::cli
