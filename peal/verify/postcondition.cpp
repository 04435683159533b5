#include "peal/verify/postcondition.h"

#include "peal/schedule/problem.h"

namespace peal::verify {
namespace {

using schedule::Problem;

Postcondition postcondition(const Problem& problem, Rank rank, Rank source) {
  const Elements nothing(0);
  switch (problem.operation) {
    case Operation::kBroadcast:
      return {{nothing, problem.count}, problem.root, nothing};
    case Operation::kReduce:
    case Operation::kAllReduce:
      return {{nothing, problem.count}, Postcondition::kAllRanks, nothing};
    case Operation::kReduceScatter:
      return {{nothing, block_count(problem, rank)},
              Postcondition::kAllRanks,
              block_offset(problem, rank)};
    case Operation::kScatter:
      return {{nothing, block_count(problem, rank)}, problem.root, block_offset(problem, rank)};
    case Operation::kGather:
    case Operation::kAllGather:
      return {{block_offset(problem, source), block_count(problem, source)}, source, nothing};
    case Operation::kAllToAll:
      return {{receive_offset(problem, source, rank), send_count(problem, source, rank)},
              source,
              send_offset(problem, source, rank)};
    case Operation::kBarrier:
    case Operation::kSend:
    case Operation::kRecv:
      return {};
  }
  return {};
}

/// How many different sources the output has.
int sources(const Problem& problem) {
  const bool each = problem.operation == Operation::kGather ||
                    problem.operation == Operation::kAllGather ||
                    problem.operation == Operation::kAllToAll;
  return each ? problem.ranks : 1;
}

}  // namespace

std::vector<Postcondition> postconditions(const Problem& problem, Rank rank) {
  std::vector<Postcondition> all;
  if (output_size(problem, rank) == Elements(0)) return all;
  for (Rank source = 0; source < sources(problem); ++source) {
    all.push_back(postcondition(problem, rank, source));
    if (all.back().range.count == Elements(0)) all.pop_back();
  }
  return all;
}

}  // namespace peal::verify
