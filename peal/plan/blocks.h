// How planners divide buffers: into a block for each rank, and into pieces that fit into a stage.
#pragma once

#include <cstdint>
#include <vector>

#include "peal/base/units.h"
#include "peal/schedule/inline_vector.h"
#include "peal/schedule/schedule.h"

namespace peal::plan {

/// Slices and pieces begin at multiples of this, so that two ranks rarely write to one cache line.
inline constexpr Elements kGrain(16);

/// A run of elements.
struct Block {
  Elements offset = {};
  Elements count = {};

  friend bool operator==(const Block&, const Block&) = default;
};

/// Neighbouring blocks that together cover a buffer, in order. Equal blocks take only a few words
/// of memory.
class Blocks {
 public:
  /// `parts` blocks that begin at multiples of `grain`. Their sizes differ by at most one grain,
  /// and the larger ones come first. With fewer grains than parts, some blocks are empty.
  static Blocks even(Elements count, std::int64_t parts, Elements grain = Elements(1));
  /// Blocks of `size` elements; the last one may be smaller.
  static Blocks of_size(Elements count, Elements size);
  /// The ranks' blocks, as they lie in the problem's large buffer. Not for all_to_all with counts.
  static Blocks of_ranks(const schedule::Problem&);
  /// all_to_all: what a rank sends to each rank, as it lies in the rank's input.
  static Blocks sent_by(const schedule::Problem&, Rank rank);
  /// all_to_all: what a rank receives from each rank, as it lies in the rank's output.
  static Blocks received_by(const schedule::Problem&, Rank rank);

  /// The elements [begin, begin + size) of each block, packed side by side.
  Blocks sections(Elements begin, Elements size) const;

  /// How many blocks there are.
  std::int64_t parts() const { return parts_; }
  Block operator[](std::int64_t i) const { return range(i, i + 1); }
  /// The blocks begin, begin + 1, ... end - 1 as one block.
  Block range(std::int64_t begin, std::int64_t end) const;

  /// `count` blocks from `first` on, as runs of elements. After the last block comes block 0, so
  /// the result is one run, or two if the blocks pass the end.
  schedule::InlineVector<Block, 2> around(std::int64_t first, std::int64_t count) const;

  Elements largest() const;
  Elements smallest() const;

 private:
  Elements begin_of(std::int64_t i) const;
  void append(Elements count);

  Elements count_;
  std::int64_t parts_ = 0;
  Elements grain_;
  std::vector<Elements> begins_;  // of each block, and the end of the last; empty for even blocks
};

/// The size of the largest block; for operations without blocks, of the buffer. Not for all_to_all
/// with counts.
Elements largest_block(const schedule::Problem&);

/// Block i if `whole` is divided into `parts` even blocks.
Block part_of(Block whole, std::int64_t i, std::int64_t parts);

/// How many pieces of at most `size` elements a buffer has; 0 if it is empty.
std::int64_t pieces_of(Elements count, Elements size);

}  // namespace peal::plan
