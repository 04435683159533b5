#include "peal/base/difference.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

namespace peal {

double difference(std::string_view a, std::string_view b) {
  if (a.empty() && b.empty()) return 0;
  std::vector<std::size_t> row(b.size() + 1);  // row[j]: from the prefix of a so far to b's first j
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t exchanged = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = std::exchange(row[j + 1], std::min({exchanged, row[j] + 1, row[j + 1] + 1}));
    }
  }
  return static_cast<double>(row.back()) / static_cast<double>(std::max(a.size(), b.size()));
}

namespace {

/// All options begin with hyphens, so equal hyphens do not make two options similar.
std::string_view without_hyphens(std::string_view word) {
  return word.substr(std::min(word.find_first_not_of('-'), word.size()));
}

}  // namespace

std::string_view nearest_word(std::string_view word, std::span<const std::string_view> known) {
  std::string_view nearest;
  double least = kNearDifference;
  for (const std::string_view other : known) {
    const double here = difference(without_hyphens(word), without_hyphens(other));
    if (here > least || (here == least && !nearest.empty())) continue;
    least = here;
    nearest = other;
  }
  return nearest;
}

}  // namespace peal
