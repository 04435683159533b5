// Shared by the tests of costs: problems whose costs are whole numbers, and what a part of a
// schedule sends, reads and writes.
#pragma once

#include <array>
#include <iosfwd>
#include <vector>

#include "peal/schedule/schedule.h"

namespace peal::plan {

inline constexpr std::array kRanks = {2, 3, 4, 5, 6, 7, 8, 9, 16};
/// The size of a rank's block; divisible by every power of two that the tests need.
inline constexpr Elements kBlock(960);

int log2_floor(int n);
int log2_ceil(int n);

/// A problem with blocks of kBlock. Without blocks, the buffer is as large as all blocks together.
/// The stage has room for it in one piece.
schedule::Problem problem_of(Operation operation, int ranks, int ranks_per_host = 1);

std::vector<schedule::Move> moves_of(const schedule::Part&);
/// Elements that a part reads and writes.
Elements moved_by(const schedule::Part&);
std::int64_t signals_of(const schedule::Part&);

/// What a rank sends.
struct Cost {
  int messages = 0;
  Elements sent = {};

  friend bool operator==(const Cost&, const Cost&) = default;
};
void PrintTo(const Cost& cost, std::ostream* out);

Cost cost_of(const schedule::Part&);

}  // namespace peal::plan
