// What the ranks give to an operation before it is timed, and what it must make of that: small
// whole numbers in closed form, exact in every type, chosen so that a misplaced chunk shows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "peal/bench/case.h"

namespace peal::bench {

/// Values are whole numbers below this: so small that a sum over all ranks is exact in the type.
int modulus(DType dtype, int ranks);

/// The value of `rank` at `index` of the whole: (hash(index) + 7 rank) mod modulus, where
///   hash(i) = (i * 2654435761 mod 2^32) / 2^16.
/// The workers in other languages compute the same.
constexpr int value_at(Rank rank, std::int64_t index, int modulus) {
  const auto mixed = static_cast<std::uint32_t>(static_cast<std::uint64_t>(index) * 2654435761U);
  return static_cast<int>((std::int64_t{mixed >> 16U} + 7 * std::int64_t{rank}) % modulus);
}

/// The rank's input, element by element.
void fill_input(std::span<std::byte> input, const Case&, Rank rank);

/// The first element of a rank's output that is not what it must be, in words: "index 7: got 3,
/// expected 5". Nothing if all are right.
std::optional<std::string> find_wrong(std::span<const std::byte> output, const Case&, Rank rank);

/// Fills with ones, with plain stores, as a user's program would write new values. Sizes that are
/// no multiple of the element's leave a rest.
void rewrite(std::span<std::byte> input, DType dtype);

/// Whether all values are what it takes to test a type: a number of any size. bool and complex
/// numbers are not measured.
bool is_measured(DType dtype);

}  // namespace peal::bench
