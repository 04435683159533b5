// How much two words differ: for hints at what was meant by a word that is misspelt.
#pragma once

#include <string_view>

namespace peal {

/// How many letters must be put in, left out or exchanged to make one of the other (Levenshtein),
/// out of the longer one's letters: 0 is the same, 1 all.
/// Cost: the product of the lengths.
double difference(std::string_view a, std::string_view b);

/// Up to here, where half of the letters are kept, one may have been meant by the other.
inline constexpr double kNearDifference = 0.5;

}  // namespace peal
