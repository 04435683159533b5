#include "peal/cli/config_command.h"

#include <fmt/format.h>

#include "peal/base/config.h"

namespace peal::cli {

std::string describe_config(const Environment& environment) {
  const Config config = config_from(environment);
  std::string text = "The environment variables that peal reads, and their values here:\n";
  for (const Variable& variable : variables()) {
    const std::string value = variable.print(config);
    const bool is_set = environment(std::string(variable.name)).has_value();
    text += fmt::format("\n{} = {}{}\n    {}\n    It takes {}.\n",
                        variable.name,
                        value.empty() ? "none" : value,
                        is_set ? "" : " (default)",
                        variable.meaning,
                        variable.value);
  }
  return text;
}

}  // namespace peal::cli
