#include "peal/plan/two_level/all_reduce.h"

#include <utility>

#include "peal/plan/banks.h"
#include "peal/plan/blocks.h"
#include "peal/plan/builder.h"
#include "peal/plan/two_level/levels.h"

namespace peal::plan::two_level {
namespace {

using schedule::Finish;
using schedule::Holds;
using schedule::Part;
using schedule::Problem;

/// How many messages a chunk needs from its reduction inside the host until it is complete. Each
/// message is one step of the pipeline.
int rounds_of(const Problem& problem) { return 2 * (Levels(problem, 0).hosts() - 1); }

/// A chunk is copied into the stage, goes around the hosts, is published, and is copied out. A rank
/// that signals after that has copied it out.
Banks chunks_of(const Problem& problem) {
  const int banks = rounds_of(problem) + 3;
  return Banks(problem.stage_limit, problem.count, 1, banks, banks);
}

class AllReduce {
 public:
  AllReduce(const Problem& problem, Rank self)
      : problem_(problem),
        levels_(problem, self),
        rounds_(rounds_of(problem)),
        chunks_(chunks_of(problem)),
        part_(problem, self) {}

  /// Registered: no rank waits between the two meetings. Only the owner of a slice touches it: it
  /// reads the slice in all inputs before it writes it to all outputs.
  Part plan_registered() && {
    part_.open();
    for (std::int64_t time = 0; time < chunks_.pieces() + rounds_; ++time) {
      if (time < chunks_.pieces()) {
        const Block own = slice(time);
        part_.move({on(levels_.host_ranks(), input_at(own.offset))},
                   {on(levels_.self(), output_at(own.offset))},
                   own.count);
      }
      go_around(time);
      if (time >= rounds_) {
        const Block own = slice(time - rounds_);
        part_.move({on(levels_.self(), output_at(own.offset))},
                   part_.others(output_at(own.offset)),
                   own.count);
      }
    }
    part_.meet(1);
    return std::move(part_).build();
  }

  Part plan_staged() && {
    part_.open();
    const std::int64_t delay = rounds_ + 1;  // time steps until a chunk is published
    for (std::int64_t time = 0; time < chunks_.pieces() + delay; ++time) {
      const bool has_new = time < chunks_.pieces();
      const bool has_old = time >= delay;
      if (has_new) copy_in(time);
      if (has_old) publish(time - delay);
      part_.meet(time + 1);
      if (has_new) reduce_staged(time);
      if (has_old) copy_out(time - delay);
      go_around(time);
    }
    return std::move(part_).build(chunks_.stage_for(problem_.count));
  }

 private:
  Block chunk(std::int64_t k) const { return chunks_.piece(k, problem_.count); }
  Block slice_of(std::int64_t k, int index) const {
    const Block whole = chunk(k);
    Block block = Blocks::even(whole.count, levels_.local(), kGrain)[index];
    block.offset += whole.offset;
    return block;
  }
  Block slice(std::int64_t k) const { return slice_of(k, levels_.index()); }
  /// The part of this rank's slice that a host completes.
  Block share(std::int64_t k, int host) const {
    return part_of(slice(k), levels_.around(host), levels_.hosts());
  }
  /// Where the stage holds the element of chunk k at `offset` of the buffer.
  Position staged(std::int64_t k, Elements offset) const {
    return chunks_.bank(k) + (offset - chunk(k).offset);
  }

  // ---- between hosts

  /// One time step of all chunks in flight: each receives the message of its previous round and
  /// sends that of the next.
  void go_around(std::int64_t time) {
    for (int round = 0; round <= rounds_; ++round) {
      const std::int64_t k = time - round;
      if (k < 0 || k >= chunks_.pieces()) continue;
      if (round > 0) take(k, round - 1);
      if (round < rounds_) give(k, round);
    }
  }

  bool reduces(int round) const { return round < levels_.hosts() - 1; }

  /// The first half of the rounds passes partial sums on to the host that completes them. The
  /// second half passes complete sums on.
  Block given(std::int64_t k, int round) const {
    return reduces(round) ? share(k, levels_.host() - round - 1)
                          : share(k, levels_.host() - (round - (levels_.hosts() - 1)));
  }

  void give(std::int64_t k, int round) {
    const Block block = given(k, round);
    part_.send(output_at(block.offset), levels_.partner(levels_.host() + 1), block.count);
  }

  void take(std::int64_t k, int round) {
    const Rank before = levels_.partner(levels_.host() - 1);
    const Block block = reduces(round)
                            ? share(k, levels_.host() - round - 2)
                            : share(k, levels_.host() - (round - (levels_.hosts() - 1)) - 1);
    const Position place = output_at(block.offset);
    if (reduces(round)) {
      const bool is_last = round == levels_.hosts() - 2;
      part_.receive_and_reduce({before, Holds::kPartial},
                               {place, Holds::kPartial},
                               place,
                               block.count,
                               First::kPeer,
                               is_last ? Finish::kYes : Finish::kNo);
    } else {
      part_.receive(before, place, block.count);
    }
  }

  // ---- inside the host, through the stage

  /// Stages what other ranks reduce: all slices except this rank's.
  void copy_in(std::int64_t k) {
    for (int index = 0; index < levels_.local(); ++index) {
      const Block block = slice_of(k, index);
      if (index == levels_.index()) continue;
      part_.copy(input_at(block.offset), staged(k, block.offset), block.count);
    }
  }

  void reduce_staged(std::int64_t k) {
    const Block own = slice(k);
    part_.move(part_.others_and(input_at(own.offset), staged(k, own.offset)),
               {on(levels_.self(), output_at(own.offset))},
               own.count);
  }

  void publish(std::int64_t k) {
    const Block own = slice(k);
    part_.copy(output_at(own.offset), staged(k, own.offset), own.count);
  }

  void copy_out(std::int64_t k) {
    for (const int index : levels_.neighbours()) {
      const Block block = slice_of(k, index);
      part_.fetch(
          levels_.neighbour(index), staged(k, block.offset), output_at(block.offset), block.count);
    }
  }

  const Problem& problem_;
  Levels levels_;
  int rounds_;
  Banks chunks_;
  Builder part_;
};

}  // namespace

bool can_all_reduce(const Problem& problem) { return chunks_of(problem).possible(); }

Part all_reduce(const Problem& problem, Rank self) {
  AllReduce algorithm(problem, self);
  return works_on_registered(problem, self) ? std::move(algorithm).plan_registered()
                                            : std::move(algorithm).plan_staged();
}

}  // namespace peal::plan::two_level
