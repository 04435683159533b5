#include "peal/plan/direct_staged.h"

#include <algorithm>
#include <utility>

#include "peal/plan/banks.h"
#include "peal/plan/blocks.h"
#include "peal/plan/builder.h"
#include "peal/plan/planners.h"

namespace peal::plan {
namespace {

using schedule::Finish;
using schedule::Part;
using schedule::Problem;

/// Up to these limits every rank reduces everything itself. With two ranks this saves a
/// synchronisation and costs nothing. With more ranks it costs less than a synchronisation, as long
/// as all inputs together fit into the caches.
constexpr int kFewRanks = 2;
constexpr Elements kFewElements(1 << 17);

bool is_sliced(const Problem& problem) {
  const bool can_be =
      problem.operation == Operation::kReduce || problem.operation == Operation::kAllReduce;
  return can_be && problem.ranks > kFewRanks && problem.count * problem.ranks > kFewElements;
}

/// How many blocks a rank stages side by side.
int blocks_of(Operation operation, int ranks) {
  const bool one_for_each = operation == Operation::kScatter ||
                            operation == Operation::kReduceScatter ||
                            operation == Operation::kAllToAll;
  return one_for_each ? ranks : 1;
}

/// A rank, how the data of all ranks goes through the stages, and the rank's part so far: nothing,
/// or the opening.
struct Stager {
  Rank self;
  Banks banks;
  Builder part;
};

/// A transfer from or to a root is a pipeline: smaller pieces finish sooner, because the receiver
/// begins when the sender has the first piece. If all ranks work on the pieces of all ranks, fewer
/// and larger pieces cost fewer synchronisations (a quarter of the time for 1 MiB between two
/// ranks).
std::int64_t most_banks(Operation operation) {
  switch (operation) {
    case Operation::kBroadcast:
    case Operation::kScatter:
    case Operation::kGather:
    case Operation::kReduce:
      return 8;
    case Operation::kAllReduce:
    case Operation::kAllGather:
    case Operation::kReduceScatter:
    case Operation::kAllToAll:
    case Operation::kBarrier:
    case Operation::kSend:
    case Operation::kRecv:
      return 2;
  }
  return 2;
}

Banks banks_of(const Problem& problem) {
  const std::int64_t least = is_sliced(problem) ? 3 : 2;
  return Banks(problem.stage_limit,
               largest_block(problem),
               blocks_of(problem.operation, problem.ranks),
               least,
               std::max(least, most_banks(problem.operation)));
}

/// All data at once.
Banks one_bank_of(const Problem& problem) {
  return Banks::whole(
      problem.stage_limit, largest_block(problem), blocks_of(problem.operation, problem.ranks));
}

// ---- reductions

/// Every rank reduces every piece for itself, from all stages in rank order.
/// Two banks suffice: a rank that has signalled piece i+1 has read piece i.
Part all_reduce_by_all(const Problem& problem, Stager stager) {
  auto& [self, banks, part] = stager;
  for (std::int64_t i = 0; i < banks.pieces(); ++i) {
    const Block piece = banks.piece(i, problem.count);
    part.copy(input_at(piece.offset), banks.bank(i), piece.count);
    part.meet(i + 1);
    part.move(part.others_and(input_at(piece.offset), banks.bank(i)),
              {on(self, output_at(piece.offset))},
              piece.count,
              Finish::kYes);
  }
  return std::move(part).build(banks.stage_for(problem.count));
}

/// The root reduces every piece, from its own input and the stages of the others, in rank order.
Part reduce_by_root(const Problem& problem, Stager stager) {
  auto& [self, banks, part] = stager;
  for (std::int64_t i = 0; i < banks.pieces(); ++i) {
    const Block piece = banks.piece(i, problem.count);
    const Position input = input_at(piece.offset);
    if (self == problem.root) {
      part.wait_for_others(i + 1);
      part.move(part.others_and(input, banks.bank(i)),
                {on(self, output_at(piece.offset))},
                piece.count,
                Finish::kYes);
    } else {
      if (banks.is_reused(i)) part.wait(problem.root, i + 1 - banks.banks());
      part.copy(input, banks.bank(i), piece.count);
    }
    part.signal(i + 1);
  }
  return std::move(part).build(banks.stage_for(problem.count));
}

/// all_reduce and reduce, with each rank the owner of a slice of every piece. The owner reduces its
/// slice into its stage, while the slices of the previous piece are copied out.
/// Three banks suffice: a rank that has signalled piece i+2 has copied piece i out.
class SlicedReduction {
 public:
  SlicedReduction(const Problem& problem, Stager stager)
      : problem_(problem),
        self_(stager.self),
        gets_(problem.operation == Operation::kAllReduce || self_ == problem.root),
        banks_(stager.banks),
        part_(std::move(stager.part)) {}

  Part plan() && {
    const std::int64_t pieces = banks_.pieces();
    for (std::int64_t i = 0; i <= pieces; ++i) {
      if (i < pieces) copy_in(i);
      part_.meet(i + 1);
      if (i > 0 && gets_) copy_out(i - 1);
      if (i < pieces) reduce(i);
    }
    return std::move(part_).build(banks_.stage_for(problem_.count));
  }

 private:
  Block piece(std::int64_t i) const { return banks_.piece(i, problem_.count); }
  Blocks slices(std::int64_t i) const {
    return Blocks::even(piece(i).count, problem_.ranks, kGrain);
  }

  /// Stages what other ranks reduce: all slices except this rank's.
  void copy_in(std::int64_t i) {
    const Block own = slices(i)[self_];
    const Elements after = own.offset + own.count;
    copy_in(i, {.count = own.offset});
    copy_in(i, {.offset = after, .count = piece(i).count - after});
  }

  void copy_in(std::int64_t i, const Block& block) {
    part_.copy(
        input_at(piece(i).offset + block.offset), banks_.bank(i) + block.offset, block.count);
  }

  void reduce(std::int64_t i) {
    const Block slice = slices(i)[self_];
    const Position staged = banks_.bank(i) + slice.offset;
    const Position output = output_at(piece(i).offset + slice.offset);
    const auto inputs = part_.others_and(input_at(piece(i).offset + slice.offset), staged);
    if (problem_.operation == Operation::kReduce && gets_) {
      part_.move(inputs, {on(self_, output)}, slice.count, Finish::kYes);
    } else if (gets_) {
      part_.move(inputs, {on(self_, output), on(self_, staged)}, slice.count, Finish::kYes);
    } else {
      part_.move(inputs, {on(self_, staged)}, slice.count, Finish::kYes);
    }
  }

  void copy_out(std::int64_t i) {
    const Blocks all = slices(i);
    for (int step = 1; step < problem_.ranks; ++step) {
      const Rank owner = (self_ + step) % problem_.ranks;
      const Block slice = all[owner];
      part_.fetch(owner,
                  banks_.bank(i) + slice.offset,
                  output_at(piece(i).offset + slice.offset),
                  slice.count);
    }
  }

  const Problem& problem_;
  Rank self_;
  bool gets_;  // whether the rank's output gets the result
  Banks banks_;
  Builder part_;
};

// ---- a block for each rank

/// Stages piece i of the blocks for all other ranks.
void copy_in_for_others(Stager& stager, const Blocks& blocks, std::int64_t i) {
  const Rank self = stager.self;
  const Banks& banks = stager.banks;
  const Blocks staged = banks.sections(i, blocks);
  const auto copy_in = [&](Rank begin, Rank end) {
    const Elements from = blocks[begin].offset + banks.begin(i);
    const Block section = staged.range(begin, end);
    stager.part.copy(input_at(from), banks.bank(i) + section.offset, section.count);
  };
  const auto ranks = static_cast<Rank>(blocks.parts());
  if (banks.pieces() == 1) {  // whole blocks: they are neighbours in the input too
    if (self > 0) copy_in(0, self);
    if (self < ranks - 1) copy_in(self + 1, ranks);
    return;
  }
  for (Rank rank = 0; rank < ranks; ++rank) {
    if (rank != self) copy_in(rank, rank + 1);
  }
}

Elements stage_of(const Banks& banks, const Blocks& blocks, std::int64_t staged_blocks) {
  const Blocks highest = banks.sections(banks.highest(), blocks);
  return banks.bank(banks.highest()).offset + highest.range(0, staged_blocks).count;
}

Part reduce_scatter(const Problem& problem, Stager stager) {
  auto& [self, banks, part] = stager;
  const Blocks blocks = Blocks::of_ranks(problem);
  for (std::int64_t i = 0; i < banks.pieces(); ++i) {
    const Block own = banks.sections(i, blocks)[self];
    const Elements begin = banks.begin(i);
    copy_in_for_others(stager, blocks, i);
    part.meet(i + 1);
    part.move(part.others_and(input_at(blocks[self].offset + begin), banks.bank(i) + own.offset),
              {on(self, output_at(begin))},
              own.count,
              Finish::kYes);
  }
  return std::move(part).build(stage_of(banks, blocks, problem.ranks));
}

Part all_to_all(const Problem& problem, Stager stager) {
  auto& [self, banks, part] = stager;
  const Blocks blocks = Blocks::of_ranks(problem);
  const Elements own = blocks[self].offset;
  part.copy(input_at(own), output_at(own), problem.count);
  for (std::int64_t i = 0; i < banks.pieces(); ++i) {
    const Block staged = banks.sections(i, blocks)[self];
    copy_in_for_others(stager, blocks, i);
    part.meet(i + 1);
    for (int step = 1; step < problem.ranks; ++step) {
      const Rank peer = (self + step) % problem.ranks;
      part.fetch(peer,
                 banks.bank(i) + staged.offset,
                 output_at(blocks[peer].offset + banks.begin(i)),
                 staged.count);
    }
  }
  return std::move(part).build(stage_of(banks, blocks, problem.ranks));
}

Part all_gather(const Problem& problem, Stager stager) {
  auto& [self, banks, part] = stager;
  const Blocks blocks = Blocks::of_ranks(problem);
  const Block own = blocks[self];
  if (!problem.in_place) part.copy(kInput, output_at(own.offset), own.count);
  for (std::int64_t i = 0; i < banks.pieces(); ++i) {
    const Block given = banks.piece(i, own.count);
    part.copy(input_at(given.offset), banks.bank(i), given.count);
    part.meet(i + 1);
    for (int step = 1; step < problem.ranks; ++step) {
      const Rank peer = (self + step) % problem.ranks;
      const Block taken = banks.piece(i, blocks[peer].count);
      part.fetch(peer, banks.bank(i), output_at(blocks[peer].offset + taken.offset), taken.count);
    }
  }
  return std::move(part).build(banks.stage_for(blocks.largest()));
}

// ---- the root with all others

Part broadcast(const Problem& problem, Stager stager) {
  auto& [self, banks, part] = stager;
  for (std::int64_t i = 0; i < banks.pieces(); ++i) {
    const Block piece = banks.piece(i, problem.count);
    if (self == problem.root) {
      if (banks.is_reused(i)) part.wait_for_others(i + 1 - banks.banks());
      part.copy(input_at(piece.offset), banks.bank(i), piece.count);
    } else {
      part.wait(problem.root, i + 1);
      part.fetch(problem.root, banks.bank(i), output_at(piece.offset), piece.count);
    }
    part.signal(i + 1);
  }
  return std::move(part).build(banks.stage_for(problem.count));
}

Part scatter(const Problem& problem, Stager stager) {
  auto& [self, banks, part] = stager;
  const Blocks blocks = Blocks::of_ranks(problem);
  const bool is_root = self == problem.root;
  if (is_root && !problem.in_place) {
    part.copy(input_at(blocks[self].offset), kOutput, problem.count);
  }
  for (std::int64_t i = 0; i < banks.pieces(); ++i) {
    if (is_root) {
      if (banks.is_reused(i)) part.wait_for_others(i + 1 - banks.banks());
      copy_in_for_others(stager, blocks, i);
    } else {
      const Block staged = banks.sections(i, blocks)[self];
      part.wait(problem.root, i + 1);
      part.fetch(
          problem.root, banks.bank(i) + staged.offset, output_at(banks.begin(i)), staged.count);
    }
    part.signal(i + 1);
  }
  const bool root_is_last = problem.root == problem.ranks - 1;
  return std::move(part).build(stage_of(banks, blocks, problem.ranks - (root_is_last ? 1 : 0)));
}

Part gather(const Problem& problem, Stager stager) {
  auto& [self, banks, part] = stager;
  const Blocks blocks = Blocks::of_ranks(problem);
  const bool is_root = self == problem.root;
  if (is_root && !problem.in_place) {
    part.copy(kInput, output_at(blocks[self].offset), problem.count);
  }
  for (std::int64_t i = 0; i < banks.pieces(); ++i) {
    const Block piece = banks.piece(i, problem.count);
    if (is_root) {
      part.wait_for_others(i + 1);
      for (int step = 1; step < problem.ranks; ++step) {
        const Rank peer = (self + step) % problem.ranks;
        part.fetch(peer, banks.bank(i), output_at(blocks[peer].offset + piece.offset), piece.count);
      }
    } else {
      if (banks.is_reused(i)) part.wait(problem.root, i + 1 - banks.banks());
      part.copy(input_at(piece.offset), banks.bank(i), piece.count);
    }
    part.signal(i + 1);
  }
  return std::move(part).build(banks.stage_for(problem.count));
}

Part reduction(const Problem& problem, Stager stager) {
  if (stager.banks.pieces() > 1 && is_sliced(problem)) {
    return SlicedReduction(problem, std::move(stager)).plan();
  }
  return problem.operation == Operation::kAllReduce ? all_reduce_by_all(problem, std::move(stager))
                                                    : reduce_by_root(problem, std::move(stager));
}

constexpr Planners<Stager> kPlanners = {.broadcast = broadcast,
                                        .reduce = reduction,
                                        .all_reduce = reduction,
                                        .scatter = scatter,
                                        .gather = gather,
                                        .all_gather = all_gather,
                                        .reduce_scatter = reduce_scatter,
                                        .all_to_all = all_to_all};

}  // namespace

bool can_stage(const Problem& problem) { return banks_of(problem).possible(); }

Part plan_staged(const Problem& problem, Rank rank) {
  Stager stager{rank, banks_of(problem), Builder(problem, rank)};
  stager.part.open();
  return kPlanners[problem.operation](problem, std::move(stager));
}

bool can_stage_whole(const Problem& problem) { return one_bank_of(problem).possible(); }

Part plan_staged_whole(const Problem& problem, Rank rank) {
  return kPlanners[problem.operation](problem,
                                      {rank, one_bank_of(problem), Builder(problem, rank)});
}

}  // namespace peal::plan
