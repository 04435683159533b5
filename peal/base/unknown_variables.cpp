#include "peal/base/unknown_variables.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "peal/base/config.h"

namespace peal {
namespace {

constexpr std::string_view kPrefix = "PEAL_";

std::vector<std::string_view> known_names() {
  std::vector<std::string_view> names;
  for (const Variable& variable : variables()) names.push_back(variable.name);
  for (const OtherVariable& variable : other_variables()) names.push_back(variable.name);
  return names;
}

bool is_of_the_tests(std::string_view name) {
  return name.starts_with("PEAL_TEST_") || name == "PEAL_ACCEPT";
}

/// How many letters must be put in, left out or exchanged to make one of the other (Levenshtein).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);  // row[j]: from what was seen of a to b's first j
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t exchanged = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = std::exchange(row[j + 1], std::min({exchanged, row[j] + 1, row[j + 1] + 1}));
    }
  }
  return row.back();
}

/// How many of the letters differ, out of the longer name's: 0 is the same, 1 all.
double difference(std::string_view a, std::string_view b) {
  return static_cast<double>(distance(a, b)) / static_cast<double>(std::max(a.size(), b.size()));
}

/// Near is what keeps half of its letters.
std::string_view nearest_to(std::string_view name, std::span<const std::string_view> known) {
  const auto difference_to = [&](std::string_view other) {
    return difference(name.substr(kPrefix.size()), other.substr(kPrefix.size()));
  };
  const std::string_view nearest = *std::ranges::min_element(known, {}, difference_to);
  return difference_to(nearest) <= 0.5 ? nearest : std::string_view();
}

}  // namespace

std::vector<UnknownVariable> unknown_variables(std::span<const std::string> names) {
  const std::vector<std::string_view> known = known_names();
  std::vector<UnknownVariable> unknown;
  for (const std::string& name : names) {
    if (!name.starts_with(kPrefix) || is_of_the_tests(name)) continue;
    if (std::ranges::find(known, name) != known.end()) continue;
    unknown.push_back({name, nearest_to(name, known)});
  }
  return unknown;
}

}  // namespace peal
