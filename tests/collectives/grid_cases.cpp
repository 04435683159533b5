// Which cases the grid is made of.
#include "tests/collectives/cases.h"

namespace peal::testing {
namespace {

using Form = Case::Form;
using Place = Case::Place;
using Memory = Case::Memory;
using Blocks = Case::Blocks;

std::vector<std::int64_t> counts_for(int ranks) { return {0, 1, ranks - 1, ranks, ranks + 1, 500}; }

/// Every operator and type that goes together, for the operations that reduce.
void add_reductions(std::vector<Case>& cases, int ranks) {
  for (const Operation operation :
       {Operation::kAllReduce, Operation::kReduce, Operation::kReduceScatter}) {
    for (const ReduceOp::Kind op : kAllReduceOpKinds) {
      for (const DType dtype : kAllDTypes) {
        if (!has_meaning(op, dtype)) continue;
        const bool whole_grid = op == ReduceOp::Kind::kSum && dtype == DType::kF32;
        for (const std::int64_t count : counts_for(ranks)) {
          if (!whole_grid && count != ranks + 1) continue;
          Case c{.operation = operation, .dtype = dtype, .op = op, .count = count};
          c.root = static_cast<Rank>(cases.size()) % ranks;
          cases.push_back(c);
        }
      }
    }
  }
}

/// Operations whose blocks may differ, in place or not, as one buffer or a list.
void add_blocks(std::vector<Case>& cases, int ranks) {
  for (const Operation operation : {Operation::kScatter,
                                    Operation::kGather,
                                    Operation::kAllGather,
                                    Operation::kReduceScatter,
                                    Operation::kAllToAll}) {
    for (const Blocks blocks : {Blocks::kEven, Blocks::kUneven, Blocks::kList}) {
      for (const Place place : {Place::kApart, Place::kInPlace}) {
        for (const std::int64_t count : counts_for(ranks)) {
          Case c{.operation = operation, .count = count, .place = place, .blocks = blocks};
          c.dtype = count % 2 == 0 ? DType::kF32 : DType::kF64;
          c.root = static_cast<Rank>(cases.size()) % ranks;
          cases.push_back(c);
        }
      }
    }
  }
}

void add_the_rest(std::vector<Case>& cases, int ranks) {
  for (Rank root = 0; root < ranks; ++root) {
    for (const std::int64_t count : counts_for(ranks)) {
      cases.push_back({.operation = Operation::kBroadcast,
                       .dtype = DType::kC128,
                       .count = count,
                       .root = root});
    }
  }
  cases.push_back({.operation = Operation::kBarrier});
  // Larger than any stage and any ring, and large enough for registered memory to be used in place.
  for (const Operation operation : kAllCollectives) {
    if (operation == Operation::kBarrier) continue;
    for (const Memory memory : {Memory::kForeign, Memory::kRegistered}) {
      for (const Place place : {Place::kApart, Place::kInPlace}) {
        cases.push_back({.operation = operation,
                         .dtype = DType::kC128,
                         .count = 1025,
                         .root = ranks - 1,
                         .place = place,
                         .memory = memory});
      }
    }
  }
}

}  // namespace

std::vector<Case> grid_cases(int ranks) {
  std::vector<Case> cases;
  add_reductions(cases, ranks);
  add_blocks(cases, ranks);
  add_the_rest(cases, ranks);
  for (std::size_t i = 0; i < cases.size(); i += 3) cases[i].form = Form::kAsync;
  return cases;
}

}  // namespace peal::testing
