// The variables of the environment. The input is the number of a row of the table and a value. A
// value that is parsed and printed parses to the same value, except the secret, which is not
// printed. No file is read.
#include "peal/config/config.h"

#include "tests/fuzz/fuzz.h"

void peal::fuzz::check(std::string_view input) {
  if (input.empty()) return;
  const auto row = static_cast<unsigned char>(input[0]) % variables().size();
  const Variable& variable = variables()[row];
  if (variable.name == "PEAL_SECRET_FILE") return;
  const auto parse = [&](std::string_view text) {
    Config config;
    variable.parse(text, config);
    return config;
  };
  const auto config = unless_refused(ErrorKind::kUsage, [&] { return parse(input.substr(1)); });
  if (!config || !config->secret.empty()) return;
  const std::string text = variable.print(*config);
  require(parse(text) == *config, text);
}
