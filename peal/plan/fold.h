// Makes any number of ranks a power of two: surplus ranks leave their values with a neighbour first
// and get the result from it in the end. For recursive doubling and halving.
#pragma once

#include <bit>

#include "peal/base/units.h"

namespace peal::plan {

/// Of the first 2 * surplus ranks each odd one leaves its value with the even one before it. The
/// ranks that remain are the core; they are numbered in rank order, 0 .. size()-1.
/// Source: Thakur, Rabenseifner and Gropp 2005, section 4.5 (numbers of ranks that are no power of
/// two).
class Fold {
 public:
  explicit Fold(int ranks)
      : size_(static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)))),
        surplus_(ranks - size_) {}

  /// How many ranks the core has, a power of two, and its logarithm.
  int size() const { return size_; }
  int rounds() const { return std::countr_zero(static_cast<unsigned>(size_)); }

  /// Whether the rank leaves its value with `rank - 1`.
  bool leaves(Rank rank) const { return rank < 2 * surplus_ && rank % 2 == 1; }
  /// Whether the rank gets the value of `rank + 1`.
  bool takes(Rank rank) const { return rank < 2 * surplus_ && rank % 2 == 0; }
  bool anyone_leaves() const { return surplus_ > 0; }

  /// The number of a rank of the core, and back.
  int number_of(Rank rank) const { return rank < 2 * surplus_ ? rank / 2 : rank - surplus_; }
  Rank rank_of(int number) const { return number < surplus_ ? 2 * number : number + surplus_; }

 private:
  int size_;
  int surplus_;
};

}  // namespace peal::plan
