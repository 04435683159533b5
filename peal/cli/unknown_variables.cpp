#include "peal/cli/unknown_variables.h"

#include <algorithm>

#include "peal/base/difference.h"
#include "peal/config/config.h"

namespace peal::cli {
namespace {

constexpr std::string_view kPrefix = "PEAL_";

std::vector<std::string_view> known_names() {
  std::vector<std::string_view> names;
  for (const Variable& variable : variables()) names.push_back(variable.name);
  for (const OtherVariable& variable : other_variables()) names.push_back(variable.name);
  return names;
}

bool is_of_the_tests(std::string_view name) { return name.starts_with("PEAL_TEST_"); }

std::string_view nearest_to(std::string_view name, std::span<const std::string_view> known) {
  const auto difference_to = [&](std::string_view other) {
    return difference(name.substr(kPrefix.size()), other.substr(kPrefix.size()));
  };
  const std::string_view nearest = *std::ranges::min_element(known, {}, difference_to);
  return difference_to(nearest) <= kNearDifference ? nearest : std::string_view();
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

}  // namespace peal::cli
