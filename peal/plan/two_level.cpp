#include "peal/plan/two_level.h"

#include <utility>

#include "peal/plan/blocks.h"
#include "peal/plan/builder.h"
#include "peal/plan/planners.h"
#include "peal/plan/two_level/all_gather.h"
#include "peal/plan/two_level/all_reduce.h"
#include "peal/plan/two_level/broadcast.h"
#include "peal/plan/two_level/levels.h"
#include "peal/plan/two_level/reduce_scatter.h"

namespace peal::plan {
namespace {

using schedule::Part;
using schedule::Problem;
using two_level::Levels;

/// The first ranks of the hosts synchronise by dissemination: with messages from the hosts 1, 2,
/// 4, ... before them. The other ranks wait for the first rank of their host.
Part barrier(const Problem& problem, Rank self) {
  const Levels levels(problem, self);
  Builder part(problem, self);
  const Rank first = levels.host_ranks().first;
  if (self == first) {
    part.wait_for_others(1);
    for (int distance = 1; distance < levels.hosts(); distance *= 2) {
      part.send_token(levels.partner(levels.host() + distance));
      part.receive_token(levels.partner(levels.host() - distance));
    }
    part.signal(1);
  } else {
    part.signal(1);
    part.wait(first, 1);
  }
  return std::move(part).build(Builder::kTokenStage);
}

constexpr Planners<Rank> kPlanners = {.broadcast = two_level::broadcast,
                                      .reduce = two_level::reduce_by_blocks,
                                      .all_reduce = two_level::all_reduce,
                                      .all_gather = two_level::all_gather,
                                      .reduce_scatter = two_level::reduce_by_blocks,
                                      .barrier = barrier};

/// Whether the stage has room for the operation.
bool fits(const Problem& problem) {
  switch (problem.operation) {
    case Operation::kBroadcast:
      return two_level::can_broadcast(problem);
    case Operation::kAllReduce:
      return two_level::can_all_reduce(problem);
    case Operation::kAllGather:
      return two_level::can_all_gather(problem);
    case Operation::kReduce:
    case Operation::kReduceScatter:
      return two_level::can_reduce_by_blocks(problem);
    case Operation::kBarrier:
      return problem.stage_limit >= Builder::kTokenStage;
    case Operation::kScatter:
    case Operation::kGather:
    case Operation::kAllToAll:
    case Operation::kSend:
    case Operation::kRecv:
      return false;
  }
  return false;
}

bool applies(const Problem& problem) {
  const bool has_levels = problem.ranks_per_host > 1 && problem.ranks > problem.ranks_per_host &&
                          problem.ranks % problem.ranks_per_host == 0;
  return has_levels && kPlanners[problem.operation] != nullptr && fits(problem);
}

Part plan(const Problem& problem, Rank rank) {
  const bool is_empty =
      problem.operation != Operation::kBarrier && largest_block(problem) == Elements(0);
  return is_empty ? Part() : kPlanners[problem.operation](problem, rank);
}

bool opens(Operation operation) {
  return operation == Operation::kReduce || operation == Operation::kAllReduce ||
         operation == Operation::kAllGather || operation == Operation::kReduceScatter;
}

}  // namespace

const Algorithm kTwoLevel = {"two_level", opens, applies, plan};

}  // namespace peal::plan
