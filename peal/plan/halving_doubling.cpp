#include "peal/plan/halving_doubling.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "peal/plan/blocks.h"
#include "peal/plan/builder.h"
#include "peal/plan/fold.h"

namespace peal::plan {
namespace {

using schedule::Finish;
using schedule::Part;
using schedule::Problem;

/// A power of two of neighbouring blocks, beginning at a multiple of their number.
struct Group {
  int begin = 0;
  int size = 1;

  bool contains(int number) const { return begin <= number && number < begin + size; }
  Group lower_half() const { return {begin, size / 2}; }
  Group upper_half() const { return {begin + size / 2, size / 2}; }
  Group half_with(int number) const {
    return lower_half().contains(number) ? lower_half() : upper_half();
  }
  Group half_without(int number) const { return half_with(number ^ (size / 2)); }
  Block of(const Blocks& blocks) const { return blocks.range(begin, begin + size); }
};

/// A rank of the core, and the blocks of the buffer, one for each rank of the core.
struct Member {
  const Fold& fold;
  Rank self;
  const Blocks& blocks;

  int number() const { return fold.number_of(self); }
  Group everything() const { return {0, fold.size()}; }
  Rank partner_across(Group group) const { return fold.rank_of(number() ^ (group.size / 2)); }
};

/// Reduces this rank's block. `operand` is the place of the whole buffer. `place_of(block, group)`
/// is where the partial sum of `block`, the half that this rank keeps, is stored. A rank of the
/// core that took another rank's value begins with a partial sum.
template <class PlaceOf>
void halve(Builder& part, const Member& me, Position operand, PlaceOf place_of) {
  Elements begin;  // offset in the buffer of what `operand` holds
  for (Group group = me.everything(); group.size > 1;) {
    const Rank partner = me.partner_across(group);
    const Block given = group.half_without(me.number()).of(me.blocks);
    const bool is_first = group.size == me.fold.size();
    group = group.half_with(me.number());
    const Block kept = group.of(me.blocks);
    const Position sum = place_of(kept, group);
    part.send(operand + (given.offset - begin), partner, given.count);
    part.receive_and_reduce(
        {partner, partial_if(!is_first || me.fold.receives_value(partner))},
        {operand + (kept.offset - begin), partial_if(!is_first || me.fold.receives_value(me.self))},
        sum,
        kept.count,
        partner < me.self ? First::kPeer : First::kOwn,
        group.size == 1 ? Finish::kYes : Finish::kNo);
    operand = sum;
    begin = kept.offset;
  }
}

/// Collects all other blocks in the output, which already holds this rank's block.
void redouble(Builder& part, const Member& me) {
  for (int size = 2; size <= me.fold.size(); size *= 2) {
    const Group group{me.number() / size * size, size};
    const Rank partner = me.partner_across(group);
    const Block given = group.half_with(me.number()).of(me.blocks);
    const Block taken = group.half_without(me.number()).of(me.blocks);
    part.send(output_at(given.offset), partner, given.count);
    part.receive(partner, output_at(taken.offset), taken.count);
  }
}

Part all_reduce(const Problem& problem, Rank self) {
  Builder part(problem, self);
  const Fold fold(problem.ranks);
  if (fold.gives_value(self)) {
    part.send(kInput, self - 1, problem.count);
    part.receive(self - 1, kOutput, problem.count);
    return std::move(part).build();
  }
  if (fold.receives_value(self)) {
    part.receive_and_reduce({self + 1}, {kInput}, kOutput, problem.count, First::kOwn, Finish::kNo);
  }
  const Blocks blocks = Blocks::even(problem.count, fold.size());
  const Member me{fold, self, blocks};
  halve(part, me, fold.receives_value(self) ? kOutput : kInput, [](Block kept, Group) {
    return output_at(kept.offset);
  });
  redouble(part, me);
  if (fold.receives_value(self)) part.send(kOutput, self + 1, problem.count);
  return std::move(part).build();
}

/// The stage of a reduce_scatter: the half that is kept in the first round, unless the first round
/// is also the last.
Elements staged_by(const Blocks& blocks, int ranks) {
  const Group all{0, ranks};
  if (ranks == 2) return Elements(0);
  return std::max(all.lower_half().of(blocks).count, all.upper_half().of(blocks).count);
}

Part reduce_scatter(const Problem& problem, Rank self) {
  Builder part(problem, self);
  const Fold fold(problem.ranks);
  const Blocks blocks = Blocks::of_ranks(problem);
  const Member me{fold, self, blocks};
  const Block half = me.everything().half_with(self).of(blocks);
  halve(part, me, kInput, [&](Block kept, Group group) {
    return group.size == 1 ? kOutput : stage_at(kept.offset - half.offset);
  });
  return std::move(part).build(staged_by(blocks, problem.ranks));
}

bool applies(const Problem& problem) {
  if (problem.ranks < 2) return false;
  if (problem.operation == Operation::kAllReduce) return true;
  return problem.operation == Operation::kReduceScatter &&
         std::has_single_bit(static_cast<unsigned>(problem.ranks)) &&
         staged_by(Blocks::of_ranks(problem), problem.ranks) <= problem.stage_limit;
}

Part plan(const Problem& problem, Rank rank) {
  return problem.operation == Operation::kAllReduce ? all_reduce(problem, rank)
                                                    : reduce_scatter(problem, rank);
}

}  // namespace

const Algorithm kHalvingDoubling = {"halving_doubling", never_opens, applies, plan};

}  // namespace peal::plan
