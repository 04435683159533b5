#include "peal/plan/binomial_tree.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "peal/plan/blocks.h"
#include "peal/plan/builder.h"
#include "peal/plan/planners.h"

namespace peal::plan {
namespace {

using schedule::Finish;
using schedule::Part;
using schedule::Problem;

constexpr Place kStage = stage_at(Elements(0));

/// A rank's place in the tree. A number is a rank counted from the root on.
class Node {
 public:
  Node(const Problem& problem, Rank self)
      : Node(problem.ranks, problem.root, (self - problem.root + problem.ranks) % problem.ranks) {}

  bool is_root() const { return number_ == 0; }
  bool is_leaf() const { return size() == 1; }
  Rank rank() const { return (root_ + number_) % ranks_; }
  Node parent() const { return {ranks_, root_, number_ & (number_ - 1)}; }

  /// How many numbers the subtree has, from the own one on.
  int size() const { return std::min(reach(), ranks_ - number_); }
  /// How many numbers before the child's lie in this subtree.
  int before(const Node& child) const { return child.number_ - number_; }

  std::vector<Node> smallest_child_first() const {
    std::vector<Node> children;
    for (int distance = 1; distance < size(); distance *= 2) {
      children.push_back({ranks_, root_, number_ + distance});
    }
    return children;
  }
  std::vector<Node> largest_child_first() const {
    std::vector<Node> children = smallest_child_first();
    std::reverse(children.begin(), children.end());
    return children;
  }

 private:
  Node(int ranks, Rank root, int number) : ranks_(ranks), root_(root), number_(number) {}

  /// The lowest set bit: how large the subtree would be if there were ranks enough.
  int reach() const { return is_root() ? ranks_ : number_ & -number_; }

  int ranks_;
  Rank root_;
  int number_;
};

// ---- one buffer

Part broadcast(const Problem& problem, Node self) {
  Builder part(problem, self.rank());
  if (!self.is_root()) part.receive(self.parent().rank(), kOutput, problem.count);
  for (const Node& child : self.largest_child_first()) {
    part.send(kOutput, child.rank(), problem.count);
  }
  return std::move(part).build();
}

/// The partial sums of a rank that is neither the root nor a leaf; with fewer than four ranks there
/// is none.
Elements staged_by_reduce(const Problem& problem) {
  return problem.ranks < 4 ? Elements(0) : problem.count;
}

Part reduce(const Problem& problem, Node self) {
  Builder part(problem, self.rank());
  Place sum = kInput;
  for (const Node& child : self.smallest_child_first()) {
    const Place next = self.is_root() ? kOutput : kStage;
    const bool completes = self.is_root() && self.before(child) + child.size() == problem.ranks;
    part.receive_and_reduce(child.rank(),
                            sum,
                            next,
                            problem.count,
                            First::kOwn,
                            completes ? Finish::kYes : Finish::kNo);
    sum = next;
  }
  if (!self.is_root()) part.send(sum, self.parent().rank(), problem.count);
  return std::move(part).build(staged_by_reduce(problem));
}

Part barrier(const Problem& problem, Node self) {
  Builder part(problem, self.rank());
  for (const Node& child : self.smallest_child_first()) part.receive_token(child.rank());
  if (!self.is_root()) {
    part.send_token(self.parent().rank());
    part.receive_token(self.parent().rank());
  }
  for (const Node& child : self.largest_child_first()) part.send_token(child.rank());
  return std::move(part).build(Builder::kTokenStage);
}

// ---- a block for each rank

/// The blocks of the largest subtree below the root; a leaf stages nothing.
Elements staged_blocks(const Problem& problem) {
  int most = 1;
  for (int number = 2; number < problem.ranks; number *= 2) {
    most = std::max(most, std::min(number, problem.ranks - number));
  }
  return most == 1 ? Elements(0) : problem.count * most;
}

/// Where a rank keeps the blocks of a child's subtree. They are one run, or two where numbers pass
/// the last rank, and travel as such: the root keeps them in rank order, others by number.
struct Kept {
  Place place;
  Elements count;
};

InlineVector<Kept, 2> kept(const Problem& problem, Node self, Node child, Place root_buffer) {
  InlineVector<Kept, 2> runs;
  Place staged = kStage + problem.count * self.before(child);
  for (const Block& run : Blocks::of_ranks(problem).around(child.rank(), child.size())) {
    runs.push_back({self.is_root() ? root_buffer + run.offset : staged, run.count});
    staged = staged + run.count;
  }
  return runs;
}

Part gather(const Problem& problem, Node self) {
  Builder part(problem, self.rank());
  const bool keeps_own_aside = self.is_root() ? !problem.in_place : !self.is_leaf();
  const Place own = self.is_root() ? output_at(problem.count * self.rank()) : kStage;
  if (keeps_own_aside) part.copy(kInput, own, problem.count);
  for (const Node& child : self.smallest_child_first()) {
    for (const Kept& run : kept(problem, self, child, kOutput)) {
      part.receive(child.rank(), run.place, run.count);
    }
  }
  if (self.is_leaf()) {
    part.send(kInput, self.parent().rank(), problem.count);
  } else if (!self.is_root()) {
    for (const Kept& run : kept(problem, self, self, kOutput)) {
      part.send(run.place, self.parent().rank(), run.count);
    }
  }
  return std::move(part).build(staged_blocks(problem));
}

Part scatter(const Problem& problem, Node self) {
  Builder part(problem, self.rank());
  if (self.is_leaf()) {
    part.receive(self.parent().rank(), kOutput, problem.count);
  } else if (!self.is_root()) {
    for (const Kept& run : kept(problem, self, self, kInput)) {
      part.receive(self.parent().rank(), run.place, run.count);
    }
  }
  for (const Node& child : self.largest_child_first()) {
    for (const Kept& run : kept(problem, self, child, kInput)) {
      part.send(run.place, child.rank(), run.count);
    }
  }
  const bool has_own_aside = self.is_root() ? !problem.in_place : !self.is_leaf();
  const Place own = self.is_root() ? input_at(problem.count * self.rank()) : kStage;
  if (has_own_aside) part.copy(own, kOutput, problem.count);
  return std::move(part).build(staged_blocks(problem));
}

constexpr Planners<Node> kPlanners = {.broadcast = broadcast,
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
  return kPlanners[problem.operation](problem, Node(problem, rank));
}

}  // namespace

const Algorithm kBinomialTree = {"binomial_tree", Memory::kAny, applies, plan};

}  // namespace peal::plan
