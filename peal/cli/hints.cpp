#include "peal/cli/hints.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/difference.h"
#include "peal/cli/spelling.h"

namespace peal::cli {
namespace {

/// "run, bench and config"
std::string enumerate(const std::vector<std::string>& words) {
  const std::vector<std::string> first(words.begin(), words.end() - 1);
  if (first.empty()) return words.back();
  return fmt::format("{} and {}", fmt::join(first, ", "), words.back());
}

}  // namespace

std::string no_such_command(const std::vector<std::string>& arguments,
                            const std::vector<std::string>& commands) {
  const std::string word = arguments.empty() ? "" : arguments.front();
  if (is_rank_count(word)) {
    return fmt::format("{} belongs to run: peal run {}", word, fmt::join(arguments, " "));
  }
  if (word.empty()) return "which command? To start a program, for example: peal run -n 2 ./train";
  if (word.starts_with('-')) {
    return fmt::format("there is no option {}; to start a program: peal run -n 2 ./train", word);
  }
  const std::string& nearest = *std::ranges::min_element(
      commands, {}, [&](const std::string& command) { return difference(word, command); });
  if (difference(word, nearest) <= kNearDifference) {
    return fmt::format("there is no command \"{}\"; did you mean {}?", word, nearest);
  }
  return fmt::format(
      "there is no command \"{}\", only {}; to start a program: peal run -n 2 {}",
      word,
      enumerate(commands),
      word.find('/') == std::string::npos ? "./train" : fmt::to_string(fmt::join(arguments, " ")));
}

}  // namespace peal::cli
