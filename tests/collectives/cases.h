// One case of the grid: an operation with all its parameters, run and checked on one rank.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "peal/group/process_group.h"

namespace peal::testing {

struct Case {
  enum class Form : unsigned char { kBlocking, kAsync };
  enum class Placement : unsigned char { kApart, kInPlace };
  /// kRegistered: allocated by the group. kHandedOver: registered in place, anywhere in a page.
  /// kMixed: kRegistered on even ranks, kForeign on the others.
  enum class Memory : unsigned char { kForeign, kRegistered, kHandedOver, kMixed };
  enum class Blocks : unsigned char { kEven, kUneven, kList };

  Operation operation = Operation::kAllReduce;  // kSend: each rank sends to the next, and receives
  DType dtype = DType::kF32;
  ReduceOp::Kind op = ReduceOp::Kind::kSum;
  std::int64_t count = 0;
  Rank root = 0;
  Form form = Form::kBlocking;
  Placement place = Placement::kApart;
  Memory memory = Memory::kForeign;
  Blocks blocks = Blocks::kEven;
};

/// Whether the group allocates the rank's memory.
constexpr bool is_allocated(Case::Memory memory, Rank rank) {
  return memory == Case::Memory::kRegistered || (memory == Case::Memory::kMixed && rank % 2 == 0);
}

std::string describe(const Case& c);

/// Runs the case as this rank of the group. Returns the error in the result, or "".
std::string run_case(ProcessGroup& group, const Case& c);

/// Runs the cases in a row. Returns the first few errors, or "".
std::string run_cases(ProcessGroup& group, const std::vector<Case>& cases);

/// The property grid for `ranks` ranks: every operation, type and operator, and the counts at which
/// algorithms go wrong. Equal on all ranks for the same seed.
std::vector<Case> grid_cases(int ranks, unsigned seed = 1);

/// Elements of a buffer or block of the large cases, and their types. The size is over 16 KiB, from
/// which on ranks access each other's registered memory. It is not a multiple of a number of ranks
/// or of a stage.
inline constexpr std::int64_t kLargeCount = 2063;
inline constexpr std::array kLargeDTypes = {DType::kI64, DType::kF64, DType::kC64, DType::kC128};

/// The cases that depend on the kind of memory: every collective, in place and apart, with
/// registered memory on all ranks, some ranks, and no rank. For ranks that share a window;
/// elsewhere nothing is registered. Equal on all ranks for the same seed.
std::vector<Case> large_cases(int ranks, unsigned seed = 1);

}  // namespace peal::testing
