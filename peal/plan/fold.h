// Reduces the number of ranks to a power of two: each surplus rank first gives its value to a
// neighbour, and receives the result from it at the end. For recursive doubling and halving.
#pragma once

#include <bit>

#include "peal/base/units.h"

namespace peal::plan {

/// Of the first 2 * surplus ranks, each odd one gives its value to the even one before it. The
/// remaining ranks are the core. Core ranks are numbered in rank order, 0 .. size()-1.
/// Source: Thakur, Rabenseifner and Gropp 2005, section 4.5 (numbers of ranks that are not powers
/// of two).
class Fold {
 public:
  explicit Fold(int ranks)
      : size_(static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)))),
        surplus_(ranks - size_) {}

  /// The number of ranks in the core, a power of two; rounds() is its logarithm.
  int size() const { return size_; }
  int rounds() const { return std::countr_zero(static_cast<unsigned>(size_)); }

  /// Whether the rank gives its value to `rank - 1`.
  bool gives_value(Rank rank) const { return rank < 2 * surplus_ && rank % 2 == 1; }
  /// Whether the rank receives the value of `rank + 1`.
  bool receives_value(Rank rank) const { return rank < 2 * surplus_ && rank % 2 == 0; }

  /// The number of a rank of the core, and the rank of a number.
  int number_of(Rank rank) const { return rank < 2 * surplus_ ? rank / 2 : rank - surplus_; }
  Rank rank_of(int number) const { return number < surplus_ ? 2 * number : number + surplus_; }

 private:
  int size_;
  int surplus_;
};

}  // namespace peal::plan
