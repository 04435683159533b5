#include "peal/plan/two_level/all_gather.h"

#include <utility>

#include "peal/plan/banks.h"
#include "peal/plan/blocks.h"
#include "peal/plan/builder.h"
#include "peal/plan/two_level/levels.h"

namespace peal::plan::two_level {
namespace {

using schedule::Part;
using schedule::Problem;

/// Two banks suffice: a rank that has signalled a piece has read the previous one.
Banks banks_of(const Problem& problem) {
  return Banks(problem.stage_limit, largest_block(problem), 1, 2, 2);
}

class AllGather {
 public:
  AllGather(const Problem& problem, Rank self)
      : problem_(problem),
        levels_(problem, self),
        blocks_(Blocks::of_ranks(problem)),
        banks_(banks_of(problem)),
        part_(problem, self) {}

  /// A rank writes to others' outputs after all ranks have entered, and before any rank leaves.
  Part plan_registered() && {
    part_.open();
    for (std::int64_t time = 0; time < end(); ++time) {
      pass_on(time);
      const Position place = in_output(time, levels_.index());
      const Elements count = piece(time, levels_.index()).count;
      if (is_own(time) && !problem_.in_place) {
        part_.copy(on(levels_.self(), source(time)), on(levels_.host_ranks(), place), count);
      } else {
        part_.move({on(levels_.self(), source(time))}, part_.others(place), count);
      }
    }
    part_.meet(1);
    return std::move(part_).build();
  }

  Part plan_staged() && {
    part_.open();
    for (std::int64_t time = 0; time < end(); ++time) {
      pass_on(time);
      const Elements count = piece(time, levels_.index()).count;
      if (is_own(time) && !problem_.in_place) {
        part_.copy(source(time), in_output(time, levels_.index()), count);
      }
      part_.copy(source(time), banks_.bank(time), count);
      part_.meet(time + 1);
      copy_out(time);
    }
    return std::move(part_).build(banks_.bank(1).offset + banks_.piece(0, blocks_.largest()).count);
  }

 private:
  // At each time step, the ranks of a host handle one piece of the blocks of one host: first of
  // their own host, then of the host before, and so on.
  std::int64_t end() const { return banks_.pieces() * levels_.hosts(); }
  int host(std::int64_t time) const {
    return levels_.host() - static_cast<int>(time / banks_.pieces());
  }
  bool is_own(std::int64_t time) const { return host(time) == levels_.host(); }
  bool is_last(std::int64_t time) const {
    return levels_.around(host(time)) == levels_.around(levels_.host() + 1);
  }

  /// The piece of the block with that index.
  Block piece(std::int64_t time, int index) const {
    return banks_.piece(time % banks_.pieces(), blocks_[levels_.rank(host(time), index)].count);
  }
  Position in_output(std::int64_t time, int index) const {
    return output_at(blocks_[levels_.rank(host(time), index)].offset + piece(time, index).offset);
  }
  /// Where this rank has the piece of its index.
  Position source(std::int64_t time) const {
    const int index = levels_.index();
    return is_own(time) ? input_at(piece(time, index).offset) : in_output(time, index);
  }

  void pass_on(std::int64_t time) {
    const Elements count = piece(time, levels_.index()).count;
    if (!is_own(time)) part_.receive(levels_.partner(levels_.host() - 1), source(time), count);
    if (!is_last(time)) part_.send(source(time), levels_.partner(levels_.host() + 1), count);
  }

  void copy_out(std::int64_t time) {
    for (const int index : levels_.neighbours()) {
      part_.fetch(levels_.neighbour(index),
                  banks_.bank(time),
                  in_output(time, index),
                  piece(time, index).count);
    }
  }

  const Problem& problem_;
  Levels levels_;
  Blocks blocks_;
  Banks banks_;
  Builder part_;
};

}  // namespace

bool can_all_gather(const Problem& problem) { return banks_of(problem).possible(); }

Part all_gather(const Problem& problem, Rank self) {
  AllGather algorithm(problem, self);
  return works_on_registered(problem, self) ? std::move(algorithm).plan_registered()
                                            : std::move(algorithm).plan_staged();
}

}  // namespace peal::plan::two_level
