#include "peal/observe/phrases.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "peal/observe/operation_text.h"

namespace peal::observe {
namespace {

/// More parts would not help a reader.
constexpr std::size_t kMostParts = 8;

/// "0 to 6", "8"
std::vector<std::string> runs_of(const std::vector<Rank>& ranks) {
  std::vector<std::string> runs;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (end - i > 2) {
      runs.push_back(fmt::format("{} to {}", ranks[i], ranks[end - 1]));
    } else {
      for (std::size_t k = i; k < end; ++k) runs.push_back(fmt::format("{}", ranks[k]));
    }
    i = end;
  }
  return runs;
}

/// If the group has operations by name: the names that the operation served (names_text). Otherwise
/// empty.
std::string purpose(const Flight& flight, const FlightOperation& operation) {
  std::vector<std::string> names;
  bool has_names = false;
  for (const FlightName& name : flight.names) {
    if (name.group != operation.kind.group) continue;
    has_names = true;
    if (operation.is_unfinished()) {
      if (name.is_unfinished()) names.push_back(name.text);
    } else if (!name.is_unfinished()) {
      names = {name.text};  // the last one
    }
  }
  return has_names && names.empty() ? "an agreement on operations by name" : names_text(names);
}

}  // namespace

std::string time_text(WallTime time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::hh_mm_ss of_day(std::chrono::floor<std::chrono::microseconds>(time - day));
  return fmt::format("{:02}:{:02}:{:02}.{:06}",
                     of_day.hours().count(),
                     of_day.minutes().count(),
                     of_day.seconds().count(),
                     of_day.subseconds().count());
}

std::string length_text(std::chrono::nanoseconds length) {
  const auto nanoseconds = static_cast<double>(length.count());
  if (nanoseconds >= 1e9) return fmt::format("{:.1f} s", nanoseconds / 1e9);
  if (nanoseconds >= 1e6) return fmt::format("{:.0f} ms", nanoseconds / 1e6);
  return fmt::format("{:.0f} us", nanoseconds / 1e3);
}

std::string ranks_text(const std::vector<Rank>& ranks) {
  std::vector<std::string> runs = runs_of(ranks);
  const bool is_long = runs.size() > kMostParts;
  if (is_long) {
    runs.resize(kMostParts);
    runs.emplace_back("others");
  }
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (i > 0) text += i + 1 == runs.size() ? " and " : ", ";
    text += runs[i];
  }
  return text;
}

std::string operation_text(const Flight& flight, const FlightOperation& operation) {
  const FlightGroup* const group = group_of(flight, operation);
  const std::string names = purpose(flight, operation);
  return fmt::format(
      "{} of {}",
      names.empty() ? describe(operation.kind, operation.sequence, operation.count) : names,
      group != nullptr ? "the group " + group->name : "a group without a name here");
}

std::string group_text(const Flight& flight, std::uint8_t group) {
  if (group >= flight.groups.size()) return "its group";
  return "the group " + flight.groups[group].name;
}

std::string as_sentence(std::string text) {
  if (!text.empty()) {
    text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  }
  return text.ends_with('.') ? text : text + ".";
}

}  // namespace peal::observe
