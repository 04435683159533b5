// Lists in one text: options, environment variables, rows of a table.
#pragma once

#include <string_view>
#include <vector>

namespace peal {

/// What stands before, between and after the `at`s, one part more than there are of those:
/// "a,,b" -> "a", "", "b"; "" -> "". The parts are views of `text`.
std::vector<std::string_view> split(std::string_view text, char at);

}  // namespace peal
