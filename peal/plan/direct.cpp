#include "peal/plan/direct.h"

#include <utility>

#include "peal/plan/blocks.h"
#include "peal/plan/builder.h"
#include "peal/plan/direct_registered.h"
#include "peal/plan/direct_staged.h"

namespace peal::plan {
namespace {

using schedule::Part;
using schedule::Problem;

bool all_ranks_know_all_sizes(const Problem& problem) {
  return problem.counts.empty() || problem.operation == Operation::kAllGather ||
         problem.operation == Operation::kReduceScatter;
}

Part barrier(const Problem& problem, Rank rank) {
  Builder part(problem, rank);
  part.meet(1);
  return std::move(part).build();
}

bool shares_a_host(const Problem& problem) {
  return problem.ranks >= 2 && problem.ranks_per_host >= problem.ranks;
}

bool applies(const Problem& problem) {
  if (!shares_a_host(problem)) return false;
  if (problem.operation == Operation::kBarrier) return true;
  return all_ranks_know_all_sizes(problem) && can_stage(problem);
}

Part plan(const Problem& problem, Rank rank) {
  if (problem.operation == Operation::kBarrier) return barrier(problem, rank);
  if (largest_block(problem) == Elements(0)) return {};
  return works_on_registered(problem, rank) ? plan_registered(problem, rank)
                                            : plan_staged(problem, rank);
}

bool inline_applies(const Problem& problem) {
  return shares_a_host(problem) && problem.operation != Operation::kBarrier &&
         all_ranks_know_all_sizes(problem) && can_stage_whole(problem);
}

Part plan_inline(const Problem& problem, Rank rank) {
  return largest_block(problem) == Elements(0) ? Part() : plan_staged_whole(problem, rank);
}

}  // namespace

const Algorithm kInline = {"inline", never_opens, inline_applies, plan_inline};
const Algorithm kDirect = {"direct", always_opens, applies, plan};

}  // namespace peal::plan
