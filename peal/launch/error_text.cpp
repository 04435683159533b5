#include "peal/launch/error_text.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "peal/observe/phrases.h"

namespace peal::launch {
namespace {

constexpr std::size_t kMostErrors = 3;      // besides that of the main failure
constexpr std::size_t kLinesOfAnError = 8;  // of these, the last ones
constexpr std::string_view kTraceback = "Traceback (most recent call last):";
constexpr std::string_view kPlaceInCode = "  File \"";
/// The lines of Python between the traceback of an exception and that of its consequence.
constexpr std::array<std::string_view, 2> kConsequences = {
    "The above exception was the direct cause of the following exception:",
    "During handling of the above exception, another exception occurred:"};

using Lines = std::span<const std::string>;

bool has(const std::string& line, std::string_view text) {
  return line.find(text) != std::string::npos;
}

/// Whether the traceback that begins at `head` shows the consequence of the exception above it.
bool is_consequence(Lines lines, std::size_t head) {
  constexpr std::size_t kBetween = 2;  // the sentence, and an empty line
  const Lines above = lines.subspan(0, head).last(std::min(head, kBetween));
  return std::ranges::any_of(above, [](const std::string& line) {
    return std::ranges::any_of(kConsequences, [&](auto text) { return line.ends_with(text); });
  });
}

std::optional<std::size_t> begin_of_traceback(Lines lines) {
  std::optional<std::size_t> begin;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (has(lines[i], kTraceback) && !(begin && is_consequence(lines, i))) begin = i;
  }
  const auto is_in_code = [](const std::string& line) { return has(line, kPlaceInCode); };
  if (!begin && std::ranges::any_of(lines, is_in_code)) begin = 0;
  return begin;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_of_a_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// Replaces each word that contains a digit by '#'. Keeps places in the code.
std::string comparable(const std::string& line) {
  const std::size_t place = line.find(kPlaceInCode);
  const std::size_t end = std::min(place, line.size());
  std::string result;
  for (std::size_t i = 0; i < end;) {
    std::size_t after = i;
    while (after < end && is_of_a_word(line[after])) ++after;
    const std::string_view word = std::string_view(line).substr(i, after - i);
    result += std::ranges::any_of(word, is_digit) ? "#" : word;
    if (after < end) result += line[after++];
    i = after;
  }
  return result + line.substr(end);
}

/// Ranks that have printed the same error.
struct SharedError {
  std::vector<Rank> ranks;
  std::vector<std::string> lines;  // of the first of these ranks
};

/// The errors, in the order of `ends`.
std::vector<SharedError> shared_errors(std::span<const ProcessEnd> ends) {
  std::vector<SharedError> errors;
  for (const ProcessEnd& end : ends) {
    std::vector<std::string> lines = error_in(end.last_lines);
    if (lines.empty()) continue;
    const auto found = std::ranges::find_if(
        errors, [&](const SharedError& error) { return is_same_error(error.lines, lines); });
    if (found != errors.end()) {
      found->ranks.push_back(end.rank);
    } else {
      errors.push_back({{end.rank}, std::move(lines)});
    }
  }
  for (SharedError& error : errors) std::ranges::sort(error.ranks);
  return errors;
}

std::string quoted(Lines lines) {
  std::string text;
  for (const std::string& line : lines) text += fmt::format("  | {}\n", line);
  return text;
}

std::string describe_main(const ProcessEnd& main, const std::vector<Rank>& ranks) {
  if (main.last_lines.empty()) return fmt::format("peal: rank {} wrote nothing\n", main.rank);
  const std::string shared =
      ranks.size() < 2 ? ""
                       : fmt::format("{} ended with the same error; ", observe::ranks_text(ranks));
  return fmt::format(
      "peal: {}the last lines of rank {}:\n{}", shared, main.rank, quoted(main.last_lines));
}

std::string describe_other(const SharedError& error) {
  const Lines lines = error.lines;
  return fmt::format("peal: {} ended with this error:\n{}",
                     observe::ranks_text(error.ranks),
                     quoted(lines.last(std::min(lines.size(), kLinesOfAnError))));
}

}  // namespace

std::vector<std::string> error_in(Lines lines) {
  std::optional<std::size_t> begin = begin_of_traceback(lines);
  for (std::size_t i = 0; i < lines.size() && !begin; ++i) {
    if (lines[i].starts_with(kUncaughtException)) begin = i;
  }
  if (!begin) return {};
  const Lines error = lines.subspan(*begin);
  return {error.begin(), error.end()};
}

bool is_same_error(Lines a, Lines b) {
  return std::ranges::equal(a, b, {}, comparable, comparable);
}

std::string describe_errors(const ProcessEnd& main, std::span<const ProcessEnd> others) {
  std::vector<ProcessEnd> ends = {main};
  std::ranges::copy_if(
      others, std::back_inserter(ends), [&](const auto& end) { return end.rank != main.rank; });
  std::vector<SharedError> errors = shared_errors(ends);
  const bool shows_error = !error_in(main.last_lines).empty();
  std::string text = describe_main(main, shows_error ? errors.front().ranks : std::vector<Rank>());
  if (shows_error) errors.erase(errors.begin());
  const std::size_t shown = std::min(errors.size(), kMostErrors);
  for (const SharedError& error : std::span(errors).first(shown)) text += describe_other(error);
  if (errors.size() > shown) {
    text += fmt::format("peal: {} other errors are not shown\n", errors.size() - shown);
  }
  return text;
}

}  // namespace peal::launch
