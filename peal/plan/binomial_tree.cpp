#include "peal/plan/binomial_tree.h"

#include <algorithm>
#include <utility>

#include "peal/plan/blocks.h"
#include "peal/plan/builder.h"
#include "peal/plan/planners.h"
#include "peal/plan/tree_node.h"

namespace peal::plan {
namespace {

using schedule::Finish;
using schedule::Holds;
using schedule::Part;
using schedule::Problem;

constexpr Position kStage = stage_at(Elements(0));

// ---- one buffer

Part broadcast(const Problem& problem, TreeNode self) {
  Builder part(problem, self.member());
  if (!self.is_root()) part.receive(self.parent().member(), kOutput, problem.count);
  for (const TreeNode& child : self.largest_child_first()) {
    part.send(kOutput, child.member(), problem.count);
  }
  return std::move(part).build();
}

/// The partial sum of a rank that is neither the root nor a leaf. With fewer than four ranks, every
/// rank is the root or a leaf.
Elements staged_by_reduce(const Problem& problem) {
  return problem.ranks < 4 ? Elements(0) : problem.count;
}

Part reduce(const Problem& problem, TreeNode self) {
  Builder part(problem, self.member());
  Value sum{kInput};
  for (const TreeNode& child : self.smallest_child_first()) {
    const Position next = self.is_root() ? kOutput : kStage;
    const bool completes = self.is_root() && self.before(child) + child.size() == problem.ranks;
    part.receive_and_reduce({child.member(), partial_if(!child.is_leaf())},
                            sum,
                            next,
                            problem.count,
                            First::kOwn,
                            completes ? Finish::kYes : Finish::kNo);
    sum = {.place = next, .holds = Holds::kPartial};
  }
  if (!self.is_root()) part.send(sum.place, self.parent().member(), problem.count);
  return std::move(part).build(staged_by_reduce(problem));
}

Part barrier(const Problem& problem, TreeNode self) {
  Builder part(problem, self.member());
  for (const TreeNode& child : self.smallest_child_first()) part.receive_token(child.member());
  if (!self.is_root()) {
    part.send_token(self.parent().member());
    part.receive_token(self.parent().member());
  }
  for (const TreeNode& child : self.largest_child_first()) part.send_token(child.member());
  return std::move(part).build(Builder::kTokenStage);
}

// ---- a block for each rank

/// The size of the blocks of the largest subtree below the root. A leaf stages nothing.
Elements staged_blocks(const Problem& problem) {
  int most = 1;
  for (int number = 2; number < problem.ranks; number *= 2) {
    most = std::max(most, std::min(number, problem.ranks - number));
  }
  return most == 1 ? Elements(0) : problem.count * most;
}

/// Where a rank keeps the blocks of a child's subtree: in one run, or in two if the numbers pass
/// the last rank. Runs are sent as they lie. The root keeps blocks in rank order, other ranks by
/// number.
struct Kept {
  Position place;
  Elements count;
};

schedule::InlineVector<Kept, 2> kept(const Problem& problem,
                                     TreeNode self,
                                     TreeNode child,
                                     Position root_buffer) {
  schedule::InlineVector<Kept, 2> runs;
  Position staged = kStage + problem.count * self.before(child);
  for (const Block& run : Blocks::of_ranks(problem).around(child.member(), child.size())) {
    runs.push_back({self.is_root() ? root_buffer + run.offset : staged, run.count});
    staged = staged + run.count;
  }
  return runs;
}

Part gather(const Problem& problem, TreeNode self) {
  Builder part(problem, self.member());
  const bool keeps_own_aside = self.is_root() ? !problem.in_place : !self.is_leaf();
  const Position own = self.is_root() ? output_at(problem.count * self.member()) : kStage;
  if (keeps_own_aside) part.copy(kInput, own, problem.count);
  for (const TreeNode& child : self.smallest_child_first()) {
    for (const Kept& run : kept(problem, self, child, kOutput)) {
      part.receive(child.member(), run.place, run.count);
    }
  }
  if (self.is_leaf()) {
    part.send(kInput, self.parent().member(), problem.count);
  } else if (!self.is_root()) {
    for (const Kept& run : kept(problem, self, self, kOutput)) {
      part.send(run.place, self.parent().member(), run.count);
    }
  }
  return std::move(part).build(staged_blocks(problem));
}

Part scatter(const Problem& problem, TreeNode self) {
  Builder part(problem, self.member());
  if (self.is_leaf()) {
    part.receive(self.parent().member(), kOutput, problem.count);
  } else if (!self.is_root()) {
    for (const Kept& run : kept(problem, self, self, kInput)) {
      part.receive(self.parent().member(), run.place, run.count);
    }
  }
  for (const TreeNode& child : self.largest_child_first()) {
    for (const Kept& run : kept(problem, self, child, kInput)) {
      part.send(run.place, child.member(), run.count);
    }
  }
  const bool has_own_aside = self.is_root() ? !problem.in_place : !self.is_leaf();
  const Position own = self.is_root() ? input_at(problem.count * self.member()) : kStage;
  if (has_own_aside) part.copy(own, kOutput, problem.count);
  return std::move(part).build(staged_blocks(problem));
}

constexpr Planners<TreeNode> kPlanners = {.broadcast = broadcast,
                                          .reduce = reduce,
                                          .scatter = scatter,
                                          .gather = gather,
                                          .barrier = barrier};

Elements staged_by(const Problem& problem) {
  if (problem.operation == Operation::kReduce) return staged_by_reduce(problem);
  const bool by_block =
      problem.operation == Operation::kScatter || problem.operation == Operation::kGather;
  return by_block ? staged_blocks(problem) : Elements(0);
}

bool applies(const Problem& problem) {
  return problem.ranks >= 2 && kPlanners[problem.operation] != nullptr && problem.counts.empty() &&
         staged_by(problem) <= problem.stage_limit;
}

Part plan(const Problem& problem, Rank rank) {
  return kPlanners[problem.operation](problem, {problem.ranks, problem.root, rank});
}

}  // namespace

const Algorithm kBinomialTree = {"binomial_tree", never_opens, applies, plan};

}  // namespace peal::plan
