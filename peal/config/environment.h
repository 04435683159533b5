// Environment variables as an argument: functions take an Environment, so that tests can pass a
// map.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

namespace peal {

/// Returns the value of a variable; nothing if it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

/// The variables of this process.
Environment process_environment();

/// Contains only these variables.
Environment fixed_environment(std::map<std::string, std::string> variables);

}  // namespace peal
