#include "peal/plan/direct_registered.h"

#include <utility>

#include "peal/plan/blocks.h"
#include "peal/plan/builder.h"

namespace peal::plan {
namespace {

using schedule::Finish;
using schedule::Part;
using schedule::Problem;
using schedule::Ranks;

constexpr Place kInput = input_at(Elements(0));
constexpr Place kOutput = output_at(Elements(0));

/// Slices begin at multiples of this, so that two ranks hardly ever write one cache line.
constexpr Elements kGrain(16);

// ---- everybody with everybody: they meet, work, and meet again

Part all_reduce(const Problem& problem, Rank self) {
  Builder part(problem, self);
  const Ranks all{.count = problem.ranks};
  const Block slice = Blocks::even(problem.count, problem.ranks, kGrain)[self];
  part.meet(1);
  part.move({on(all, input_at(slice.offset))},
            {on(all, output_at(slice.offset))},
            slice.count,
            Finish::kYes);
  part.meet(2);
  return std::move(part).build();
}

Part reduce(const Problem& problem, Rank self) {
  Builder part(problem, self);
  const Ranks all{.count = problem.ranks};
  const Block slice = Blocks::even(problem.count, problem.ranks, kGrain)[self];
  part.meet(1);
  part.move({on(all, input_at(slice.offset))},
            {on(problem.root, output_at(slice.offset))},
            slice.count,
            Finish::kYes);
  part.meet(2);
  return std::move(part).build();
}

Part reduce_scatter(const Problem& problem, Rank self) {
  Builder part(problem, self);
  const Ranks all{.count = problem.ranks};
  const Block own = Blocks::of_ranks(problem)[self];
  part.meet(1);
  part.move({on(all, input_at(own.offset))}, {on(self, kOutput)}, own.count, Finish::kYes);
  part.meet(2);
  return std::move(part).build();
}

Part all_gather(const Problem& problem, Rank self) {
  Builder part(problem, self);
  const Ranks all{.count = problem.ranks};
  const Block own = Blocks::of_ranks(problem)[self];
  const Place place = output_at(own.offset);
  part.meet(1);
  if (problem.in_place) {
    part.move({on(self, kInput)}, part.others(place), own.count);
  } else {
    part.copy(on(self, kInput), on(all, place), own.count);
  }
  part.meet(2);
  return std::move(part).build();
}

Part all_to_all(const Problem& problem, Rank self) {
  Builder part(problem, self);
  part.meet(1);
  for (int step = 0; step < problem.ranks; ++step) {
    const Rank peer = (self + step) % problem.ranks;
    part.copy(on(peer, input_at(problem.count * self)),
              on(self, output_at(problem.count * peer)),
              problem.count);
  }
  part.meet(2);
  return std::move(part).build();
}

// ---- the root with everybody: only the root waits in the end, since only its memory is touched

Part broadcast(const Problem& problem, Rank self) {
  Builder part(problem, self);
  if (self == problem.root) {
    part.signal(1);
    part.wait_for_others(1);
  } else {
    part.wait(problem.root, 1);
    part.copy(on(problem.root, kInput), on(self, kOutput), problem.count);
    part.signal(1);
  }
  return std::move(part).build();
}

Part scatter(const Problem& problem, Rank self) {
  Builder part(problem, self);
  const Place own = input_at(problem.count * self);
  if (self == problem.root) {
    part.signal(1);
    if (!problem.in_place) part.copy(own, kOutput, problem.count);
    part.wait_for_others(1);
  } else {
    part.wait(problem.root, 1);
    part.copy(on(problem.root, own), on(self, kOutput), problem.count);
    part.signal(1);
  }
  return std::move(part).build();
}

Part gather(const Problem& problem, Rank self) {
  Builder part(problem, self);
  const Place own = output_at(problem.count * self);
  if (self == problem.root) {
    part.signal(1);
    if (!problem.in_place) part.copy(kInput, own, problem.count);
    part.wait_for_others(1);
  } else {
    part.wait(problem.root, 1);
    part.copy(on(self, kInput), on(problem.root, own), problem.count);
    part.signal(1);
  }
  return std::move(part).build();
}

}  // namespace

Part plan_registered(const Problem& problem, Rank rank) {
  switch (problem.operation) {
    case Operation::kBroadcast:
      return broadcast(problem, rank);
    case Operation::kReduce:
      return reduce(problem, rank);
    case Operation::kAllReduce:
      return all_reduce(problem, rank);
    case Operation::kScatter:
      return scatter(problem, rank);
    case Operation::kGather:
      return gather(problem, rank);
    case Operation::kAllGather:
      return all_gather(problem, rank);
    case Operation::kReduceScatter:
      return reduce_scatter(problem, rank);
    case Operation::kAllToAll:
      return all_to_all(problem, rank);
    case Operation::kBarrier:
    case Operation::kSend:
    case Operation::kRecv:
      return {};
  }
  return {};
}

}  // namespace peal::plan
