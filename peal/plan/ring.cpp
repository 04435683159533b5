#include "peal/plan/ring.h"

#include <utility>

#include "peal/plan/blocks.h"
#include "peal/plan/builder.h"
#include "peal/plan/planners.h"

namespace peal::plan {
namespace {

using schedule::Finish;
using schedule::Part;
using schedule::Problem;

/// A rank's place in the ring.
struct Ring {
  int ranks = 0;
  Rank self = 0;

  Rank next() const { return (self + 1) % ranks; }
  Rank before(int steps = 1) const { return (self - steps + ranks) % ranks; }
  int last_step() const { return ranks - 2; }
};

// ---- the two halves; block_of(r) is the block of rank r

/// Completes this rank's block. `place_of(step, block)` is where the partial sum of `block` that
/// arrives in `step` is stored; the last one is complete.
template <class BlockOf, class PlaceOf>
void reduce_scatter_around(Builder& part, Ring ring, BlockOf block_of, PlaceOf place_of) {
  Position partial = input_at(block_of(ring.before(1)).offset);
  for (int step = 0; step <= ring.last_step(); ++step) {
    const Block given = block_of(ring.before(step + 1));
    const Block taken = block_of(ring.before(step + 2));
    part.send(partial, ring.next(), given.count);
    partial = place_of(step, taken);
    part.receive_and_reduce({ring.before(), partial_if(step > 0)},
                            {input_at(taken.offset)},
                            partial,
                            taken.count,
                            First::kPeer,
                            step == ring.last_step() ? Finish::kYes : Finish::kNo);
  }
}

/// Collects the blocks of the other ranks in the output. This rank's block is complete at `own`.
template <class BlockOf>
void all_gather_around(Builder& part, Ring ring, BlockOf block_of, Position own) {
  for (int step = 0; step <= ring.last_step(); ++step) {
    const Block given = block_of(ring.before(step));
    const Block taken = block_of(ring.before(step + 1));
    part.send(step == 0 ? own : output_at(given.offset), ring.next(), given.count);
    part.receive(ring.before(), output_at(taken.offset), taken.count);
  }
}

// ---- the stage

/// Partial sums use the places of the stage in turn, beginning with the last place.
struct Staging {
  Elements place = {};      // the size of one place
  std::int64_t places = 0;  // how many places
  std::int64_t pieces = 1;  // how many pieces each block has

  Elements size() const { return place * places; }
  Position in_turn(std::int64_t use) const { return stage_at(place * (places - 1 - use % places)); }
};

/// `block` is the size of the largest block. For each piece, `sums` partial sums are staged. With
/// several pieces there is one place more, so that a place is written again only after later
/// messages have come around the ring.
Staging staging_for(const Problem& problem, Elements block, int sums) {
  if (block * sums <= problem.stage_limit) return {.place = block, .places = sums, .pieces = 1};
  const std::int64_t places = sums + 1;
  const std::int64_t pieces = pieces_of(block, problem.stage_limit / places);
  return {.place = part_of({.count = block}, 0, pieces).count, .places = places, .pieces = pieces};
}

Blocks blocks_of(const Problem& problem) {
  return problem.operation == Operation::kReduceScatter ||
                 problem.operation == Operation::kAllGather
             ? Blocks::of_ranks(problem)
             : Blocks::even(problem.count, problem.ranks);
}

/// How many partial sums of each piece are staged: those that are not stored in the output.
int staged_sums(const Problem& problem) {
  return problem.operation == Operation::kReduceScatter ? problem.ranks - 2 : problem.ranks - 1;
}

/// A rank learns that a place is free by the messages that come around the ring. So every step
/// needs a message: no piece of a block may be empty.
bool can_stage(const Problem& problem) {
  const Blocks blocks = blocks_of(problem);
  const int sums = staged_sums(problem);
  if (blocks.largest() * sums <= problem.stage_limit) return true;
  return problem.stage_limit > Elements(sums) &&
         blocks.smallest() >= Elements(staging_for(problem, blocks.largest(), sums).pieces);
}

// ---- the operations

Part all_reduce(const Problem& problem, Ring ring) {
  Builder part(problem, ring.self);
  const Blocks blocks = blocks_of(problem);
  const auto block_of = [&](Rank rank) { return blocks[rank]; };
  const auto in_output = [](int, Block block) { return output_at(block.offset); };
  reduce_scatter_around(part, ring, block_of, in_output);
  all_gather_around(part, ring, block_of, output_at(blocks[ring.self].offset));
  return std::move(part).build();
}

Part reduce_scatter(const Problem& problem, Ring ring) {
  Builder part(problem, ring.self);
  const Blocks blocks = blocks_of(problem);
  const Elements begin = blocks[ring.self].offset;
  const int sums = staged_sums(problem);
  const Staging stage = staging_for(problem, blocks.largest(), sums);
  for (std::int64_t piece = 0; piece < stage.pieces; ++piece) {
    const auto piece_of = [&](Rank rank) { return part_of(blocks[rank], piece, stage.pieces); };
    reduce_scatter_around(part, ring, piece_of, [&](int step, Block block) {
      return step == ring.last_step() ? output_at(block.offset - begin)
                                      : stage.in_turn(piece * sums + step);
    });
  }
  return std::move(part).build(stage.size());
}

Part reduce(const Problem& problem, Ring ring) {
  Builder part(problem, ring.self);
  const Blocks blocks = blocks_of(problem);
  const int sums = staged_sums(problem);
  const Staging stage = staging_for(problem, blocks.largest(), sums);
  const bool is_root = ring.self == problem.root;
  for (std::int64_t piece = 0; piece < stage.pieces; ++piece) {
    const auto piece_of = [&](Rank rank) {
      // The rank before the root has the first block, one of the largest. Its sums use the stage of
      // the rank after the root, so the stage is as large as its largest use.
      const int index = (rank - problem.root + 1 + ring.ranks) % ring.ranks;
      return part_of(blocks[index], piece, stage.pieces);
    };
    const auto place_of = [&](int step, Block block) {
      return is_root ? output_at(block.offset) : stage.in_turn(piece * sums + step);
    };
    reduce_scatter_around(part, ring, piece_of, place_of);
    const Block own = piece_of(ring.self);
    if (!is_root) part.send(place_of(ring.last_step(), own), problem.root, own.count);
    for (int step = 1; is_root && step < ring.ranks; ++step) {
      const Block other = piece_of(ring.before(step));
      part.receive(ring.before(step), output_at(other.offset), other.count);
    }
  }
  return std::move(part).build(stage.size());
}

Part all_gather(const Problem& problem, Ring ring) {
  Builder part(problem, ring.self);
  const Blocks blocks = blocks_of(problem);
  const Block own = blocks[ring.self];
  all_gather_around(
      part, ring, [&](Rank rank) { return blocks[rank]; }, kInput);
  if (!problem.in_place) part.copy(kInput, output_at(own.offset), own.count);
  return std::move(part).build();
}

Part broadcast(const Problem& problem, Ring ring) {
  Builder part(problem, ring.self);
  const Blocks pieces = Blocks::of_size(problem.count, kRingBroadcastPiece);
  const bool is_root = ring.self == problem.root;
  const bool is_last = ring.next() == problem.root;
  for (std::int64_t i = 0; i < pieces.parts(); ++i) {
    const Block piece = pieces[i];
    const Position place = output_at(piece.offset);
    if (!is_root) part.receive(ring.before(), place, piece.count);
    if (!is_last) part.send(place, ring.next(), piece.count);
  }
  return std::move(part).build();
}

constexpr Planners<Ring> kPlanners = {.broadcast = broadcast,
                                      .reduce = reduce,
                                      .all_reduce = all_reduce,
                                      .all_gather = all_gather,
                                      .reduce_scatter = reduce_scatter};

bool applies(const Problem& problem) {
  if (problem.ranks < 2 || kPlanners[problem.operation] == nullptr) return false;
  const bool stages =
      problem.operation == Operation::kReduceScatter || problem.operation == Operation::kReduce;
  return !stages || can_stage(problem);
}

Part plan(const Problem& problem, Rank rank) {
  return kPlanners[problem.operation](problem, {problem.ranks, rank});
}

}  // namespace

const Algorithm kRing = {"ring", never_opens, applies, plan};

}  // namespace peal::plan
