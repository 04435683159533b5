// Banks of the stage: a buffer is cut into pieces, and the pieces use the banks in turn.
#pragma once

#include <cstdint>

#include "peal/plan/blocks.h"
#include "peal/plan/builder.h"

namespace peal::plan {

/// Piece i goes through bank i modulo the number of banks.
class Banks {
 public:
  /// For blocks of at most `largest` elements. A bank holds one piece of each of `blocks` blocks.
  /// There are `most` banks; with a tight limit fewer, but at least `least`.
  Banks(
      Elements limit, Elements largest, std::int64_t blocks, std::int64_t least, std::int64_t most);

  /// One bank that holds the blocks as a whole.
  static Banks whole(Elements limit, Elements largest, std::int64_t blocks);

  /// Whether the limit leaves room for the banks.
  bool possible() const { return possible_; }

  /// How many pieces the largest block has.
  std::int64_t pieces() const { return pieces_; }
  /// The offset of piece i in each block.
  Elements begin(std::int64_t i) const { return piece_size_ * i; }
  /// Piece i of a block of `count` elements; empty if the block ends before.
  Block piece(std::int64_t i, Elements count) const;
  /// Piece i of each of several blocks, side by side as in a bank.
  Blocks sections(std::int64_t i, const Blocks& blocks) const {
    return blocks.sections(begin(i), piece_size_);
  }
  Position bank(std::int64_t i) const { return stage_at(bank_size_ * (i % banks_)); }
  /// Whether piece i overwrites the bank of piece i - banks().
  bool is_reused(std::int64_t i) const { return i >= banks_; }
  std::int64_t banks() const { return banks_; }
  /// The index of the first, largest piece in the highest bank that is used. Where this piece ends,
  /// the stage ends.
  std::int64_t highest() const;
  /// The stage up to that end, for one block of `count` elements.
  Elements stage_for(Elements count) const {
    return bank(highest()).offset + piece(highest(), count).count;
  }

 private:
  Banks() = default;

  Elements piece_size_;
  Elements bank_size_;
  std::int64_t banks_ = 1;
  std::int64_t pieces_ = 0;
  bool possible_ = false;
};

}  // namespace peal::plan
