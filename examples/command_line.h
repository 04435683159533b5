// How the examples read their command lines.
#pragma once

#include <limits>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

/// A check for a whole number of 1 or more. CLI::PositiveNumber would print a limit of 309 digits.
inline CLI::Validator is_positive() {
  return CLI::Range(1, std::numeric_limits<int>::max(), "POSITIVE");
}

/// A check for the name of a file or folder.
inline CLI::Validator is_not_empty() {
  return {[](const std::string& text) { return std::string(text.empty() ? "is empty" : ""); }, ""};
}

/// Returns nothing if the program should run. After --help returns 0. If an argument is wrong,
/// prints the reason and returns 2.
inline std::optional<int> parse_command_line(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return std::nullopt;
}
