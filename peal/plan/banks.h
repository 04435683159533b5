// The stage as a row of banks that the pieces of a buffer go through in turn.
#pragma once

#include <cstdint>

#include "peal/plan/blocks.h"
#include "peal/plan/builder.h"

namespace peal::plan {

/// Piece i goes through bank i modulo the number of banks.
class Banks {
 public:
  /// For blocks of at most `largest` elements; a bank holds a piece of each of `blocks` of them.
  /// There are `most` banks, or fewer where the limit is tight, but `least` at least.
  Banks(
      Elements limit, Elements largest, std::int64_t blocks, std::int64_t least, std::int64_t most);

  /// One bank for all of it.
  static Banks whole(Elements limit, Elements largest, std::int64_t blocks);

  /// Whether the limit allows it.
  bool possible() const { return possible_; }

  /// How many pieces the largest block has.
  std::int64_t pieces() const { return pieces_; }
  /// Where in each block piece i begins.
  Elements begin(std::int64_t i) const { return piece_size_ * i; }
  /// A piece of a block of `count` elements; empty where the block ends before.
  Block piece(std::int64_t i, Elements count) const;
  /// That piece of each of several blocks, as they lie side by side in a bank.
  Blocks sections(std::int64_t i, const Blocks& blocks) const {
    return blocks.sections(begin(i), piece_size_);
  }
  Place bank(std::int64_t i) const { return stage_at(bank_size_ * (i % banks_)); }
  /// Whether piece i comes into the bank that piece i - banks() was in.
  bool is_reused(std::int64_t i) const { return i >= banks_; }
  std::int64_t banks() const { return banks_; }
  /// The largest piece that comes into the highest bank: where it ends, the stage ends.
  std::int64_t highest() const;
  /// How much of the stage that is, for one block of `count` elements.
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
