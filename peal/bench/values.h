// The inputs and expected outputs of an operation, for the check before it is timed. Values are
// small whole numbers in closed form, exact in every type, and chosen so that a misplaced chunk is
// found.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "peal/bench/case.h"

namespace peal::bench {

/// Values are whole numbers below this modulus, which is so small that a sum over all ranks is
/// exact in the type.
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

/// Describes the first wrong element of a rank's output: "index 7: got 3, expected 5". nullopt if
/// all elements are right.
std::optional<std::string> find_wrong(std::span<const std::byte> output, const Case&, Rank rank);

/// Fills the input with ones, by plain stores, as a user's program would write new values. Bytes
/// after the last whole element do not change.
void rewrite(std::span<std::byte> input, DType dtype);

/// Whether the benchmark supports the type: all numbers except bool and complex numbers.
bool is_measured(DType dtype);

}  // namespace peal::bench
