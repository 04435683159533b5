#include "peal/plan/direct_registered.h"

#include <utility>

#include "peal/plan/blocks.h"
#include "peal/plan/builder.h"
#include "peal/plan/planners.h"

namespace peal::plan {
namespace {

using schedule::Finish;
using schedule::Part;
using schedule::Problem;
using schedule::Ranks;

// ---- all ranks with all ranks: they meet in the opening, work, and meet again

/// Runs `work(part)` between two meetings: after all ranks' memory is ready, and before any rank
/// leaves.
template <class Work>
Part between_meetings(const Problem& problem, Rank self, Work work) {
  Builder part(problem, self);
  part.open();
  work(part);
  part.meet(1);
  return std::move(part).build();
}

/// Reduces this rank's slice of all inputs into the outputs of `targets`.
Part reduce_into(const Ranks& targets, const Problem& problem, Rank self) {
  return between_meetings(problem, self, [&](Builder& part) {
    const Block slice = Blocks::even(problem.count, problem.ranks, kGrain)[self];
    part.move({on(Ranks{.count = problem.ranks}, input_at(slice.offset))},
              {on(targets, output_at(slice.offset))},
              slice.count,
              Finish::kYes);
  });
}

Part all_reduce(const Problem& problem, Rank self) {
  return reduce_into({.count = problem.ranks}, problem, self);
}

Part reduce(const Problem& problem, Rank self) {
  return reduce_into({.first = problem.root}, problem, self);
}

Part reduce_scatter(const Problem& problem, Rank self) {
  return between_meetings(problem, self, [&](Builder& part) {
    const Block own = Blocks::of_ranks(problem)[self];
    part.move({on(Ranks{.count = problem.ranks}, input_at(own.offset))},
              {on(self, kOutput)},
              own.count,
              Finish::kYes);
  });
}

Part all_gather(const Problem& problem, Rank self) {
  return between_meetings(problem, self, [&](Builder& part) {
    const Block own = Blocks::of_ranks(problem)[self];
    const Position place = output_at(own.offset);
    if (problem.in_place) {
      part.move({on(self, kInput)}, part.others(place), own.count);
    } else {
      part.copy(on(self, kInput), on(Ranks{.count = problem.ranks}, place), own.count);
    }
  });
}

Part all_to_all(const Problem& problem, Rank self) {
  return between_meetings(problem, self, [&](Builder& part) {
    for (int step = 0; step < problem.ranks; ++step) {
      const Rank peer = (self + step) % problem.ranks;
      part.fetch(
          peer, input_at(problem.count * self), output_at(problem.count * peer), problem.count);
    }
  });
}

// ---- the root with all others: only the root waits at the end, because only its memory is touched

/// Each other rank copies `from` to `to`. The root does too, unless its block is already in place.
Part copy_with_root(const Problem& problem,
                    Rank self,
                    const schedule::Slice& from,
                    const schedule::Slice& to) {
  const bool in_place = problem.in_place || problem.operation == Operation::kBroadcast;
  Builder part(problem, self);
  if (self == problem.root) {
    part.signal(1);  // the opening
    if (!in_place) part.copy(from, to, problem.count);
    part.wait_for_others(1);
  } else {
    part.wait(problem.root, 1);  // the opening
    part.copy(from, to, problem.count);
    part.signal(1);
  }
  return std::move(part).build();
}

Part broadcast(const Problem& problem, Rank self) {
  return copy_with_root(problem, self, on(problem.root, kInput), on(self, kOutput));
}

Part scatter(const Problem& problem, Rank self) {
  const Position own = input_at(problem.count * self);
  return copy_with_root(problem, self, on(problem.root, own), on(self, kOutput));
}

Part gather(const Problem& problem, Rank self) {
  const Position own = output_at(problem.count * self);
  return copy_with_root(problem, self, on(self, kInput), on(problem.root, own));
}

constexpr Planners<Rank> kPlanners = {.broadcast = broadcast,
                                      .reduce = reduce,
                                      .all_reduce = all_reduce,
                                      .scatter = scatter,
                                      .gather = gather,
                                      .all_gather = all_gather,
                                      .reduce_scatter = reduce_scatter,
                                      .all_to_all = all_to_all};

}  // namespace

Part plan_registered(const Problem& problem, Rank rank) {
  return kPlanners[problem.operation](problem, rank);
}

}  // namespace peal::plan
