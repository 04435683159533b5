// How much two words differ, for hints about a misspelt word.
#pragma once

#include <span>
#include <string_view>

namespace peal {

/// The number of letters to insert, remove or replace to turn one word into the other
/// (Levenshtein), divided by the length of the longer word: 0 for equal words, 1 if all letters
/// differ.
/// Cost: the product of the lengths.
double difference(std::string_view a, std::string_view b);

/// Up to this difference (half of the letters are the same) a word may be a misspelling of another.
inline constexpr double kNearDifference = 0.5;

/// The word of `known` that differs least from `word`, not counting hyphens at the beginning; empty
/// if all differ by more than kNearDifference.
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> known);

}  // namespace peal
