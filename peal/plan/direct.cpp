#include "peal/plan/direct.h"

#include <utility>

#include "peal/plan/blocks.h"
#include "peal/plan/builder.h"
#include "peal/plan/direct_registered.h"
#include "peal/plan/direct_staged.h"

namespace peal::plan {
namespace {

using schedule::Access;
using schedule::Part;
using schedule::Problem;

/// Up to here two copies, in and out of the stage, cost less than a second synchronisation.
constexpr Elements kSmall(128);

bool goes_through_stage(const Problem& problem) {
  return problem.access == Access::kForeign ||
         (largest_block(problem) <= kSmall && can_stage(problem));
}

bool all_ranks_know_all_sizes(const Problem& problem) {
  return problem.counts.empty() || problem.operation == Operation::kAllGather ||
         problem.operation == Operation::kReduceScatter;
}

Part barrier(const Problem& problem, Rank rank) {
  Builder part(problem, rank);
  part.meet(1);
  return std::move(part).build();
}

bool applies(const Problem& problem) {
  if (problem.ranks < 2 || problem.ranks_per_host < problem.ranks) return false;
  if (problem.operation == Operation::kBarrier) return true;
  return all_ranks_know_all_sizes(problem) &&
         (problem.access == Access::kRegistered || can_stage(problem));
}

Part plan(const Problem& problem, Rank rank) {
  if (problem.operation == Operation::kBarrier) return barrier(problem, rank);
  if (largest_block(problem) == Elements(0)) return {};
  return goes_through_stage(problem) ? plan_staged(problem, rank) : plan_registered(problem, rank);
}

}  // namespace

const Algorithm kDirect = {"direct", applies, plan};

}  // namespace peal::plan
