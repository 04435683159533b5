#include "peal/plan/banks.h"

#include <algorithm>

namespace peal::plan {
Banks::Banks(
    Elements limit, Elements largest, std::int64_t blocks, std::int64_t least, std::int64_t most)
    : banks_(std::min(most, limit.value / blocks)), possible_(banks_ >= least) {
  if (!possible_) return;
  piece_size_ = limit / (banks_ * blocks);
  if (piece_size_ > kGrain) piece_size_ = kGrain * (piece_size_ / kGrain);
  piece_size_ = std::min(piece_size_, kGrain * pieces_of(largest, kGrain));
  bank_size_ = piece_size_ * blocks;
  pieces_ = pieces_of(largest, piece_size_);
}

Banks Banks::whole(Elements limit, Elements largest, std::int64_t blocks) {
  Banks banks;
  banks.piece_size_ = largest;
  banks.bank_size_ = largest * blocks;
  banks.pieces_ = 1;
  banks.possible_ = banks.bank_size_ <= limit;
  return banks;
}

Block Banks::piece(std::int64_t i, Elements count) const {
  const Elements begin = std::min(count, piece_size_ * i);
  return {.offset = begin, .count = std::min(piece_size_, count - begin)};
}

std::int64_t Banks::highest() const { return std::min(banks_, pieces_) - 1; }

}  // namespace peal::plan
