// What to say to arguments that begin with no command of the program.
#pragma once

#include <string>
#include <vector>

namespace peal::cli {

/// A sentence that says what was meant, as far as one can tell. `arguments`: all after "peal".
/// `commands`: those that there are, one at least.
std::string no_such_command(const std::vector<std::string>& arguments,
                            const std::vector<std::string>& commands);

}  // namespace peal::cli
