// One case of the grid: an operation with everything that can vary, carried out and checked on one
// rank.
#pragma once

#include <string>
#include <vector>

#include "peal/group/process_group.h"

namespace peal::testing {

struct Case {
  enum class Form : unsigned char { kBlocking, kAsync };
  enum class Place : unsigned char { kApart, kInPlace };
  enum class Memory : unsigned char { kForeign, kRegistered };
  enum class Blocks : unsigned char { kEven, kUneven, kList };

  Operation operation = Operation::kAllReduce;  // kSend: each rank to the next, and its receive
  DType dtype = DType::kF32;
  ReduceOp::Kind op = ReduceOp::Kind::kSum;
  std::int64_t count = 0;
  Rank root = 0;
  Form form = Form::kBlocking;
  Place place = Place::kApart;
  Memory memory = Memory::kForeign;
  Blocks blocks = Blocks::kEven;
};

std::string describe(const Case& c);

/// Carries the case out as this rank of the group. Returns what is wrong with the result, or "".
std::string run_case(ProcessGroup& group, const Case& c);

/// Runs them in a row. Returns the first few that went wrong, or "".
std::string run_cases(ProcessGroup& group, const std::vector<Case>& cases);

/// The property grid for so many ranks: every operation, type and operator, and the counts at which
/// algorithms go wrong. Equal on all ranks for the same seed.
std::vector<Case> grid_cases(int ranks, unsigned seed = 1);

}  // namespace peal::testing
