// Draws samples with given weights, such as rare classes more often. The order of the weighted
// sampler. With the same arguments all ranks draw the same samples, without a message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace peal::train::data {

enum class Replacement : unsigned char {
  kWith,     // a sample can be drawn several times in an epoch
  kWithout,  // at most once
};

/// Draws indices of a list of weights. A weight of 0 is never drawn.
class WeightedDraw {
 public:
  /// Errors: usage (a weight that is negative, infinite or NaN; no positive weight).
  /// Cost: a few passes over the weights.
  WeightedDraw(std::span<const double> weights, Replacement replacement);

  /// `count` indices, which depend only on the weights and these arguments, on every machine.
  ///   kWith:    each draw gives i with probability weights[i] / sum of weights
  ///   kWithout: each draw gives i with probability weights[i] / sum of the weights not drawn yet
  /// Errors: usage (kWithout: more draws than positive weights).
  /// Cost: kWith: 2 random numbers for each draw. kWithout: about 5 random numbers for each weight,
  ///   and a sort of the drawn keys.
  /// Source: kWith: Vose 1991, A linear algorithm for generating random numbers with a given
  ///   distribution (the alias method). kWithout: Efraimidis and Spirakis 2006, Weighted random
  ///   sampling with a reservoir (exponential keys).
  std::vector<std::size_t> draw(std::size_t count, std::uint64_t seed, std::uint64_t epoch) const;

  /// Returns if `count` draws are possible. Errors: as draw().
  void require_possible(std::size_t count) const;

  /// The number of positive weights.
  std::size_t positive() const { return columns_.size(); }

 private:
  /// A column of the alias table: with probability `own` the index itself, else the alias.
  struct Column {
    std::size_t index;
    double weight;
    double own = 1;
    std::size_t alias = 0;
  };

  void fill_table();
  std::vector<std::size_t> draw_with(std::size_t count, std::uint64_t seed, std::uint64_t) const;
  std::vector<std::size_t> draw_without(std::size_t count, std::uint64_t seed, std::uint64_t) const;

  Replacement replacement_;
  std::vector<Column> columns_;  // one for each positive weight
  double sum_ = 0;
};

}  // namespace peal::train::data
