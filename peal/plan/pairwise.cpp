#include "peal/plan/pairwise.h"

#include <algorithm>
#include <utility>

#include "peal/plan/blocks.h"
#include "peal/plan/builder.h"
#include "peal/plan/planners.h"
#include "peal/schedule/problem.h"

namespace peal::plan {
namespace {

using schedule::Finish;
using schedule::Holds;
using schedule::Part;
using schedule::Problem;

/// The peers of a rank in rounds 1 .. last.
struct Partners {
  int ranks = 0;
  Rank self = 0;

  Rank target(int round) const { return (self + round) % ranks; }
  Rank source(int round) const { return (self - round + ranks) % ranks; }
  int last() const { return ranks - 1; }
};

// ---- all ranks with all ranks

Part all_to_all(const Problem& problem, Partners pairs) {
  Builder part(problem, pairs.self);
  const Blocks sent = Blocks::sent_by(problem, pairs.self);
  const Blocks received = Blocks::received_by(problem, pairs.self);
  for (int round = 1; round <= pairs.last(); ++round) {
    const Block given = sent[pairs.target(round)];
    const Block taken = received[pairs.source(round)];
    part.send(input_at(given.offset), pairs.target(round), given.count);
    part.receive(pairs.source(round), output_at(taken.offset), taken.count);
  }
  const Block own = sent[pairs.self];
  part.copy(input_at(own.offset), output_at(received[pairs.self].offset), own.count);
  return std::move(part).build();
}

Part all_gather(const Problem& problem, Partners pairs) {
  Builder part(problem, pairs.self);
  const Blocks blocks = Blocks::of_ranks(problem);
  const Block own = blocks[pairs.self];
  for (int round = 1; round <= pairs.last(); ++round) {
    const Block taken = blocks[pairs.source(round)];
    part.send(kInput, pairs.target(round), own.count);
    part.receive(pairs.source(round), output_at(taken.offset), taken.count);
  }
  if (!problem.in_place) part.copy(kInput, output_at(own.offset), own.count);
  return std::move(part).build();
}

Part reduce_scatter(const Problem& problem, Partners pairs) {
  Builder part(problem, pairs.self);
  const Blocks blocks = Blocks::of_ranks(problem);
  const Block own = blocks[pairs.self];
  Position sum = input_at(own.offset);
  for (int round = 1; round <= pairs.last(); ++round) {
    const Block given = blocks[pairs.target(round)];
    const Finish finish = round == pairs.last() ? Finish::kYes : Finish::kNo;
    part.send(input_at(given.offset), pairs.target(round), given.count);
    part.receive_and_reduce({pairs.source(round)},
                            {sum, partial_if(round > 1)},
                            kOutput,
                            own.count,
                            First::kOwn,
                            finish);
    sum = kOutput;
  }
  return std::move(part).build();
}

/// sum = in_0 op in_1 op ...; this rank's input is at `own`, and the others come as messages.
void reduce_in_rank_order(
    Builder& part, Partners pairs, Position own, Position sum, Elements count) {
  const auto finish_after = [&](Rank rank) {
    return rank == pairs.last() ? Finish::kYes : Finish::kNo;
  };
  if (pairs.self > 1) part.receive(0, sum, count);
  if (pairs.self == 1) {
    part.receive_and_reduce({0}, {own}, sum, count, First::kPeer, finish_after(1));
  }
  Value so_far{.place = pairs.self == 0 ? own : sum, .holds = partial_if(pairs.self == 1)};
  for (Rank rank = pairs.self == 1 ? 2 : 1; rank <= pairs.last(); ++rank) {
    if (rank == pairs.self) {
      part.reduce(so_far, {own}, sum, count, finish_after(rank));
    } else {
      part.receive_and_reduce({rank}, so_far, sum, count, First::kOwn, finish_after(rank));
    }
    so_far = {.place = sum, .holds = Holds::kPartial};
  }
}

Part all_reduce(const Problem& problem, Partners pairs) {
  Builder part(problem, pairs.self);
  // Ranks that are not in place do as the others: messages and stages of all ranks must agree.
  const bool staged = problem.in_place;
  const Elements half = problem.stage_limit / 2;
  const bool fits = problem.count <= problem.stage_limit;
  const Blocks pieces = Blocks::of_size(problem.count, fits ? problem.count : half);
  for (std::int64_t i = 0; i < pieces.parts(); ++i) {
    const Block piece = pieces[i];
    const Position own = staged ? stage_at(half * (i % 2)) : input_at(piece.offset);
    if (staged) part.copy(input_at(piece.offset), own, piece.count);
    for (int round = 1; round <= pairs.last(); ++round) {
      part.send(own, pairs.target(round), piece.count);
    }
    reduce_in_rank_order(part, pairs, own, output_at(piece.offset), piece.count);
  }
  return std::move(part).build(fits ? problem.count : half * 2);
}

Part barrier(const Problem& problem, Partners pairs) {
  Builder part(problem, pairs.self);
  for (int round = 1; round <= pairs.last(); ++round) part.send_token(pairs.target(round));
  for (int round = 1; round <= pairs.last(); ++round) part.receive_token(pairs.source(round));
  return std::move(part).build(Builder::kTokenStage);
}

// ---- the root with all others; if blocks differ, the others know only their own sizes

Part broadcast(const Problem& problem, Partners pairs) {
  Builder part(problem, pairs.self);
  if (pairs.self == problem.root) {
    for (int round = 1; round <= pairs.last(); ++round) {
      part.send(kInput, pairs.target(round), problem.count);
    }
  } else {
    part.receive(problem.root, kOutput, problem.count);
  }
  return std::move(part).build();
}

Part reduce(const Problem& problem, Partners pairs) {
  Builder part(problem, pairs.self);
  if (pairs.self != problem.root) {
    part.send(kInput, problem.root, problem.count);
    return std::move(part).build();
  }
  Position sum = kInput;
  for (int round = 1; round <= pairs.last(); ++round) {
    const Finish finish = round == pairs.last() ? Finish::kYes : Finish::kNo;
    part.receive_and_reduce({pairs.target(round)},
                            {sum, partial_if(round > 1)},
                            kOutput,
                            problem.count,
                            First::kOwn,
                            finish);
    sum = kOutput;
  }
  return std::move(part).build();
}

Part scatter(const Problem& problem, Partners pairs) {
  Builder part(problem, pairs.self);
  if (pairs.self != problem.root) {
    part.receive(problem.root, kOutput, block_count(problem, pairs.self));
    return std::move(part).build();
  }
  const Blocks blocks = Blocks::of_ranks(problem);
  for (int round = 1; round <= pairs.last(); ++round) {
    const Block given = blocks[pairs.target(round)];
    part.send(input_at(given.offset), pairs.target(round), given.count);
  }
  const Block own = blocks[pairs.self];
  if (!problem.in_place) part.copy(input_at(own.offset), kOutput, own.count);
  return std::move(part).build();
}

Part gather(const Problem& problem, Partners pairs) {
  Builder part(problem, pairs.self);
  if (pairs.self != problem.root) {
    part.send(kInput, problem.root, block_count(problem, pairs.self));
    return std::move(part).build();
  }
  const Blocks blocks = Blocks::of_ranks(problem);
  const Block own = blocks[pairs.self];
  if (!problem.in_place) part.copy(kInput, output_at(own.offset), own.count);
  for (int round = 1; round <= pairs.last(); ++round) {
    const Block taken = blocks[pairs.target(round)];
    part.receive(pairs.target(round), output_at(taken.offset), taken.count);
  }
  return std::move(part).build();
}

constexpr Planners<Partners> kPlanners = {.broadcast = broadcast,
                                          .reduce = reduce,
                                          .all_reduce = all_reduce,
                                          .scatter = scatter,
                                          .gather = gather,
                                          .all_gather = all_gather,
                                          .reduce_scatter = reduce_scatter,
                                          .all_to_all = all_to_all,
                                          .barrier = barrier};

bool applies(const Problem& problem) {
  return problem.ranks >= 2 && kPlanners[problem.operation] != nullptr;
}

Part plan(const Problem& problem, Rank rank) {
  return kPlanners[problem.operation](problem, {problem.ranks, rank});
}

}  // namespace

const Algorithm kPairwise = {"pairwise", never_opens, applies, plan};

}  // namespace peal::plan
