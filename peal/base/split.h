// Lists in one text: options, environment variables, rows of a table.
#pragma once

#include <string_view>
#include <vector>

namespace peal {

/// The parts of `text` between the separators `at`, one part more than separators:
/// "a,,b" -> "a", "", "b"; "" -> "". The parts are views of `text`.
std::vector<std::string_view> split(std::string_view text, char at);

}  // namespace peal
