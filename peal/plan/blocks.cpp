#include "peal/plan/blocks.h"

#include <algorithm>
#include <cstddef>

#include "peal/schedule/problem.h"

namespace peal::plan {

using schedule::Problem;

Blocks Blocks::even(Elements count, std::int64_t parts, Elements grain) {
  Blocks blocks;
  blocks.count_ = count;
  blocks.parts_ = parts;
  blocks.grain_ = grain;
  return blocks;
}

Blocks Blocks::of_size(Elements count, Elements size) {
  return even(count, pieces_of(count, size), size);
}

Blocks Blocks::of_ranks(const Problem& problem) {
  if (problem.counts.empty()) return even(problem.count * problem.ranks, problem.ranks);
  Blocks blocks;
  for (Rank r = 0; r < problem.ranks; ++r) blocks.append(block_count(problem, r));
  return blocks;
}

Blocks Blocks::sent_by(const Problem& problem, Rank rank) {
  Blocks blocks;
  for (Rank r = 0; r < problem.ranks; ++r) blocks.append(send_count(problem, rank, r));
  return blocks;
}

Blocks Blocks::received_by(const Problem& problem, Rank rank) {
  Blocks blocks;
  for (Rank r = 0; r < problem.ranks; ++r) blocks.append(send_count(problem, r, rank));
  return blocks;
}

Blocks Blocks::sections(Elements begin, Elements size) const {
  Blocks sections;
  for (std::int64_t i = 0; i < parts_; ++i) {
    sections.append(std::clamp((*this)[i].count - begin, Elements(0), size));
  }
  return sections;
}

Block Blocks::range(std::int64_t begin, std::int64_t end) const {
  return {.offset = begin_of(begin), .count = begin_of(end) - begin_of(begin)};
}

schedule::InlineVector<Block, 2> Blocks::around(std::int64_t first, std::int64_t count) const {
  const std::int64_t end = first + count;
  if (end <= parts_) return {range(first, end)};
  return {range(first, parts_), range(0, end - parts_)};
}

Elements Blocks::largest() const {
  Elements most;
  for (std::int64_t i = 0; i < parts_; ++i) {
    most = std::max(most, (*this)[i].count);
    if (begins_.empty()) break;  // even blocks: the first is the largest
  }
  return most;
}

Elements Blocks::smallest() const {
  Elements least = largest();
  for (std::int64_t i = 0; i < parts_; ++i) least = std::min(least, (*this)[i].count);
  return least;
}

Elements Blocks::begin_of(std::int64_t i) const {
  if (!begins_.empty()) return begins_[static_cast<std::size_t>(i)];
  const std::int64_t grains = pieces_of(count_, grain_);
  const std::int64_t each = grains / parts_;
  const std::int64_t larger = grains % parts_;
  return std::min(count_, grain_ * (each * i + std::min(larger, i)));
}

void Blocks::append(Elements count) {
  if (begins_.empty()) begins_.push_back(Elements(0));
  count_ += count;
  begins_.push_back(count_);
  ++parts_;
}

Elements largest_block(const Problem& problem) {
  return problem.counts.empty() ? problem.count : Blocks::of_ranks(problem).largest();
}

Block part_of(Block whole, std::int64_t i, std::int64_t parts) {
  const Block part = Blocks::even(whole.count, parts)[i];
  return {.offset = whole.offset + part.offset, .count = part.count};
}

std::int64_t pieces_of(Elements count, Elements size) {
  return count == Elements(0) ? 0 : (count.value - 1) / size.value + 1;
}

}  // namespace peal::plan
