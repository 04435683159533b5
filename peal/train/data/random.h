// Random numbers that are the same with every compiler and standard library. The C++ standard
// specifies the engines of <random> to the bit, but not the distributions, so this file has its
// own. Used by permutations, by weighted draws and by the drawing of digits.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>
#include <vector>

namespace peal::train::data {

class Random {
 public:
  Random(std::initializer_list<std::uint64_t> seeds) : engine_(seeded(seeds)) {}

  /// Uniform in 0 .. bound - 1; `bound` is at least 1. Draws numbers of the incomplete last round
  /// again, to avoid bias.
  std::uint64_t below(std::uint64_t bound) {
    const std::uint64_t incomplete = (0 - bound) % bound;  // 2^64 mod bound
    std::uint64_t drawn = engine_();
    while (drawn < incomplete) drawn = engine_();
    return drawn % bound;
  }

  /// Uniform in [low, high).
  double between(double low, double high) {
    constexpr double kUnit = 1.0 / 9007199254740992.0;  // 2^-53
    return low + (high - low) * (static_cast<double>(engine_() >> 11) * kUnit);
  }

  /// Exponentially distributed with mean 1. Compares numbers and computes no logarithm, because the
  /// last bit of a logarithm differs between math libraries. Draws about 5 numbers.
  /// Source: von Neumann 1951, Various techniques used in connection with random digits.
  double exponential() {
    for (double rejected = 0;; rejected += 1) {
      const double first = between(0, 1);
      // With probability exp(-first), the falling run that `first` begins has an odd length.
      bool odd = true;
      double last = first;
      for (double drawn = between(0, 1); drawn < last; drawn = between(0, 1)) {
        last = drawn;
        odd = !odd;
      }
      if (odd) return rejected + first;
    }
  }

 private:
  static std::mt19937_64 seeded(std::initializer_list<std::uint64_t> seeds) {
    std::vector<std::uint32_t> words;
    for (const std::uint64_t seed : seeds) {
      words.push_back(static_cast<std::uint32_t>(seed));
      words.push_back(static_cast<std::uint32_t>(seed >> 32));
    }
    std::seed_seq sequence(words.begin(), words.end());
    return std::mt19937_64(sequence);
  }

  std::mt19937_64 engine_;
};

}  // namespace peal::train::data
