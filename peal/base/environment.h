// Environment variables as an argument: whoever reads them is handed this, so that tests hand a
// map.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

namespace peal {

/// The value of a variable, nothing where it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

/// The variables of this process.
Environment process_environment();

/// Just these.
Environment fixed_environment(std::map<std::string, std::string> variables);

}  // namespace peal
