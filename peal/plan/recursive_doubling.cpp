#include "peal/plan/recursive_doubling.h"

#include <algorithm>
#include <utility>

#include "peal/plan/blocks.h"
#include "peal/plan/builder.h"
#include "peal/plan/fold.h"
#include "peal/plan/planners.h"

namespace peal::plan {
namespace {

using schedule::Finish;
using schedule::Part;
using schedule::Problem;

// ---- all_reduce

/// Where the sums of an all_reduce live between the rounds. Round 0 begins with the input itself,
/// unless the result overwrites the input, or a folded rank's value was added to it. The stage has
/// a place for round 0 in any case: ranks may differ in `in_place`, but not in their stage.
class Sums {
 public:
  Sums(const Problem& problem, const Fold& fold) : places_(fold.rounds()), count_(problem.count) {
    fits_ = count_ * places_ <= problem.stage_limit;
    size_ = fits_ ? count_ : problem.stage_limit / (2 * places_);
  }

  bool possible() const { return fits_ || size_ > Elements(0); }
  Blocks pieces() const { return Blocks::of_size(count_, size_); }
  /// Where round `round` of a piece finds its sum.
  Position place(std::int64_t piece, int round) const {
    return stage_at(size_ * (piece % 2 * places_ + round));
  }
  Elements stage() const { return size_ * places_ * (fits_ ? 1 : 2); }

 private:
  int places_;
  Elements count_;
  bool fits_ = true;
  Elements size_;  // of a place
};

/// Adds the value of a folded rank, if this rank takes one. Returns the place where round 0 begins.
Position fold_in(
    Builder& part, const Problem& problem, const Fold& fold, Rank self, Block piece, Position sum) {
  const Position input = input_at(piece.offset);
  if (fold.receives_value(self)) {
    part.receive_and_reduce({self + 1}, {input}, sum, piece.count, First::kOwn, Finish::kNo);
    return sum;
  }
  if (!problem.in_place) return input;
  part.copy(input, sum, piece.count);
  return sum;
}

Part all_reduce(const Problem& problem, Rank self) {
  Builder part(problem, self);
  const Fold fold(problem.ranks);
  const Sums sums(problem, fold);
  const Blocks pieces = sums.pieces();
  for (std::int64_t i = 0; i < pieces.parts(); ++i) {
    const Block piece = pieces[i];
    const Position result = output_at(piece.offset);
    if (fold.gives_value(self)) {
      part.send(input_at(piece.offset), self - 1, piece.count);
      part.receive(self - 1, result, piece.count);
      continue;
    }
    Position sum = fold_in(part, problem, fold, self, piece, sums.place(i, 0));
    for (int round = 0; round < fold.rounds(); ++round) {
      const bool last = round == fold.rounds() - 1;
      const Rank partner = fold.rank_of(fold.number_of(self) ^ (1 << round));
      const auto holds = [&](Rank rank) {
        return partial_if(round > 0 || fold.receives_value(rank));
      };
      const Position next = last ? result : sums.place(i, round + 1);
      part.send(sum, partner, piece.count);
      part.receive_and_reduce({partner, holds(partner)},
                              {sum, holds(self)},
                              next,
                              piece.count,
                              partner < self ? First::kPeer : First::kOwn,
                              last ? Finish::kYes : Finish::kNo);
      sum = next;
    }
    if (fold.receives_value(self)) part.send(result, self + 1, piece.count);
  }
  return std::move(part).build(sums.stage());
}

// ---- all_gather and barrier

Part all_gather(const Problem& problem, Rank self) {
  Builder part(problem, self);
  const Blocks blocks = Blocks::of_ranks(problem);
  const Block own = blocks[self];
  if (!problem.in_place) part.copy(kInput, output_at(own.offset), own.count);
  // A rank holds the blocks of `held` ranks, beginning with itself.
  for (int held = 1; held < problem.ranks; held *= 2) {
    const Rank behind = (self - held + problem.ranks) % problem.ranks;
    const Rank ahead = (self + held) % problem.ranks;
    const int more = std::min(held, problem.ranks - held);
    for (const Block& run : blocks.around(self, more)) {
      part.send(output_at(run.offset), behind, run.count);
    }
    for (const Block& run : blocks.around(ahead, more)) {
      part.receive(ahead, output_at(run.offset), run.count);
    }
  }
  return std::move(part).build();
}

Part barrier(const Problem& problem, Rank self) {
  Builder part(problem, self);
  for (int distance = 1; distance < problem.ranks; distance *= 2) {
    part.send_token((self + distance) % problem.ranks);
    part.receive_token((self - distance + problem.ranks) % problem.ranks);
  }
  return std::move(part).build(Builder::kTokenStage);
}

constexpr Planners<Rank> kPlanners = {
    .all_reduce = all_reduce, .all_gather = all_gather, .barrier = barrier};

bool applies(const Problem& problem) {
  if (problem.ranks < 2 || kPlanners[problem.operation] == nullptr) return false;
  return problem.operation != Operation::kAllReduce ||
         Sums(problem, Fold(problem.ranks)).possible();
}

Part plan(const Problem& problem, Rank rank) { return kPlanners[problem.operation](problem, rank); }

}  // namespace

const Algorithm kRecursiveDoubling = {"recursive_doubling", never_opens, applies, plan};

}  // namespace peal::plan
