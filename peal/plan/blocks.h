// How planners cut buffers: into a block for each rank, and into pieces that fit into a stage.
#pragma once

#include <cstdint>
#include <vector>

#include "peal/base/inline_vector.h"
#include "peal/base/units.h"
#include "peal/schedule/schedule.h"

namespace peal::plan {

/// Slices and pieces begin at multiples of this, so that two ranks hardly ever write one cache
/// line.
inline constexpr Elements kGrain(16);

/// A run of elements.
struct Block {
  Elements offset = {};
  Elements count = {};

  friend bool operator==(const Block&, const Block&) = default;
};

/// Neighbouring blocks that together cover a buffer, in order. A few words where they are alike.
class Blocks {
 public:
  /// `parts` blocks that begin at multiples of `grain` and whose sizes differ by at most one grain,
  /// larger ones first. Some are empty where there are fewer grains than parts.
  static Blocks even(Elements count, std::int64_t parts, Elements grain = Elements(1));
  /// Blocks of `size` elements, but for a smaller last one.
  static Blocks of_size(Elements count, Elements size);
  /// The ranks' blocks as the problem's large buffer holds them. Not for all_to_all with counts.
  static Blocks of_ranks(const schedule::Problem&);
  /// all_to_all: what a rank sends to each rank, as its input holds it.
  static Blocks sent_by(const schedule::Problem&, Rank rank);
  /// all_to_all: what a rank receives from each rank, as its output holds it.
  static Blocks received_by(const schedule::Problem&, Rank rank);

  /// The elements [begin, begin + size) of each block, without what lies between.
  Blocks sections(Elements begin, Elements size) const;

  /// How many blocks there are.
  std::int64_t parts() const { return parts_; }
  Block operator[](std::int64_t i) const { return range(i, i + 1); }
  /// The blocks begin, begin + 1, ... end - 1 as one.
  Block range(std::int64_t begin, std::int64_t end) const;

  /// The blocks first, first + 1, ..., of which the one after the last is block 0 again: one run,
  /// or two where they pass the end.
  InlineVector<Block, 2> around(std::int64_t first, std::int64_t count) const;

  Elements largest() const;
  Elements smallest() const;

 private:
  Elements begin_of(std::int64_t i) const;
  void append(Elements count);

  Elements count_;
  std::int64_t parts_ = 0;
  Elements grain_;
  std::vector<Elements> begins_;  // of each block and of what follows the last; empty where even
};

/// The largest block, or the buffer where there are no blocks. Not for all_to_all with counts.
Elements largest_block(const schedule::Problem&);

/// Block i of `parts` even ones that make up `whole`.
Block part_of(Block whole, std::int64_t i, std::int64_t parts);

/// In how many pieces of at most `size` elements a buffer can be cut; none if it is empty.
std::int64_t pieces_of(Elements count, Elements size);

}  // namespace peal::plan
