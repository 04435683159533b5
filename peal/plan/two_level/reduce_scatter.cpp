#include "peal/plan/two_level/reduce_scatter.h"

#include <algorithm>
#include <utility>

#include "peal/plan/blocks.h"
#include "peal/plan/builder.h"
#include "peal/plan/two_level/levels.h"

namespace peal::plan::two_level {
namespace {

using schedule::Finish;
using schedule::Holds;
using schedule::Part;
using schedule::Problem;

Blocks blocks_of(const Problem& problem) {
  return problem.operation == Operation::kReduce ? Blocks::even(problem.count, problem.ranks)
                                                 : Blocks::of_ranks(problem);
}

/// How blocks are cut into pieces, and the stage into sections of one piece each.
struct Cut {
  std::int64_t pieces = 1;  // of each block; 0 if the stage is too small
  int lanes = 1;            // how many pieces are in flight
  Elements section;

  // sections
  int inputs = 0;     // two sets of one host's blocks: signalling one shows that the other was read
  int sums = 0;       // for each lane
  int published = 0;  // for each lane: complete parts, for the root

  int sections() const { return inputs + lanes * (sums + published); }
};

Cut cut_of(const Problem& problem) {
  const Levels levels(problem, 0);
  const bool is_reduce = problem.operation == Operation::kReduce;
  const Elements largest = blocks_of(problem).largest();
  const int sums = is_reduce ? levels.hosts() : levels.hosts() - 1;  // of each piece
  Cut cut{.section = kGrain * pieces_of(largest, kGrain),
          .inputs = 2 * levels.local(),
          .sums = sums,
          .published = is_reduce ? levels.hosts() : 0};
  if (cut.section * cut.sections() <= problem.stage_limit) return cut;
  cut.lanes = 2;
  cut.sums = sums + 2;
  cut.section = problem.stage_limit / cut.sections();
  if (cut.section > kGrain) cut.section = kGrain * (cut.section / kGrain);
  cut.pieces = cut.section == Elements(0) ? 0 : 2 * pieces_of(largest, cut.section * 2);
  return cut;
}

/// The work of one time step.
struct TimeStep {
  std::int64_t piece = 0;
  int lane = 0;
  std::int64_t lap = 0;  // of the lane, around the hosts
  int round = 0;         // of the lap: 0 begins the sum, the last completes it
};

class Reduction {
 public:
  Reduction(const Problem& problem, Rank self)
      : problem_(problem),
        levels_(problem, self),
        gathers_(problem.operation == Operation::kReduce),
        is_registered_(works_on_registered(problem, self)),
        blocks_(blocks_of(problem)),
        cut_(cut_of(problem)),
        part_(problem, self) {}

  Part plan() && {
    const std::int64_t end = cut_.pieces * levels_.hosts();
    part_.open();
    for (std::int64_t time = 0; time < end; ++time) advance(time);
    if (is_registered_) {
      part_.meet(1);
    } else if (gathers_) {
      part_.signal(end + 1);
      if (is_root()) part_.wait_for_others(end + 1);
      collect(turn(end - 1));
    }
    return std::move(part_).build(cut_.section *
                                  (first_sum() + cut_.lanes * (cut_.sums + cut_.published)));
  }

 private:
  bool is_root() const { return levels_.self() == problem_.root; }
  int root_host() const { return levels_.host_of(problem_.root); }

  TimeStep turn(std::int64_t time) const {
    const std::int64_t laps = time / cut_.lanes / levels_.hosts();
    const auto lane = static_cast<int>(time % cut_.lanes);
    return {.piece = laps * cut_.lanes + lane,
            .lane = lane,
            .lap = laps,
            .round = static_cast<int>(time / cut_.lanes % levels_.hosts())};
  }
  bool completes(const TimeStep& turn) const { return turn.round == levels_.hosts() - 1; }
  /// When the lap ends, the complete parts of all lanes are received. They cannot be received
  /// sooner: from the previous partner, they come behind the sum of the last lane.
  bool ends_lap(const TimeStep& turn) const {
    return completes(turn) && turn.lane == cut_.lanes - 1;
  }
  TimeStep in_lane(TimeStep turn, int lane) const {
    turn.piece += lane - turn.lane;
    turn.lane = lane;
    return turn;
  }
  /// The host whose blocks are reduced.
  int host(const TimeStep& turn) const { return levels_.around(levels_.host() - 1 - turn.round); }
  Block piece(Rank rank, std::int64_t piece) const {
    return part_of(blocks_[rank], piece, cut_.pieces);
  }

  // ---- places

  Position section(int number) const { return stage_at(cut_.section * number); }
  Position staged_input(std::int64_t time, int index) const {
    return section(static_cast<int>(time % 2) * levels_.local() + index);
  }
  int first_sum() const { return is_registered_ ? 0 : cut_.inputs; }
  Position sum(const TimeStep& turn) const {
    const int of_a_lap = gathers_ ? levels_.hosts() : levels_.hosts() - 1;
    const auto turns = static_cast<int>((turn.lap * of_a_lap + turn.round) % cut_.sums);
    return section(first_sum() + turn.lane * cut_.sums + turns);
  }
  Position published(const TimeStep& turn, int host) const {
    return section(first_sum() + cut_.lanes * cut_.sums + turn.lane * cut_.published + host);
  }
  /// Where this rank's piece is complete.
  Position complete(const TimeStep& turn) const {
    const Elements begin = piece(levels_.self(), turn.piece).offset;
    if (!gathers_) return output_at(begin - blocks_[levels_.self()].offset);
    if (is_root()) return output_at(begin);
    return levels_.host() == root_host() ? published(turn, levels_.host()) : sum(turn);
  }

  // ---- one time step

  void advance(std::int64_t time) {
    const TimeStep now = turn(time);
    if (!is_registered_) {
      copy_in(time);
      part_.meet(time + 1);
      if (gathers_ && time > 0) collect(turn(time - 1));
    }
    const Position place = completes(now) ? complete(now) : sum(now);
    const Block own = piece(levels_.partner(host(now)), now.piece);
    reduce_in_host(time, own, place);
    if (now.round > 0) {
      part_.receive_and_reduce({levels_.partner(levels_.host() - 1), Holds::kPartial},
                               {place, Holds::kPartial},
                               place,
                               own.count,
                               First::kPeer,
                               completes(now) ? Finish::kYes : Finish::kNo);
    }
    if (!completes(now)) {
      part_.send(place, levels_.partner(levels_.host() + 1), own.count);
    } else if (gathers_) {
      bring_home(now);
    }
  }

  /// Stages what the other ranks of the host reduce.
  void copy_in(std::int64_t time) {
    const TimeStep now = turn(time);
    for (int index = 0; index < levels_.local(); ++index) {
      const Block block = piece(levels_.rank(host(now), index), now.piece);
      if (index == levels_.index()) continue;
      part_.copy(input_at(block.offset), staged_input(time, index), block.count);
    }
  }

  void reduce_in_host(std::int64_t time, const Block& own, const Position& place) {
    const Position input = input_at(own.offset);
    if (is_registered_) {
      part_.move({on(levels_.host_ranks(), input)}, {on(levels_.self(), place)}, own.count);
    } else {
      part_.move(part_.others_and(input, staged_input(time, levels_.index())),
                 {on(levels_.self(), place)},
                 own.count);
    }
  }

  // ---- reduce: complete parts, to the root

  void bring_home(const TimeStep& turn) {
    if (levels_.host() != root_host()) {
      const Block own = piece(levels_.self(), turn.piece);
      part_.send(complete(turn), levels_.partner(root_host()), own.count);
      return;
    }
    give_to_root(turn, levels_.host());
    if (!ends_lap(turn)) return;
    for (int lane = 0; lane < cut_.lanes; ++lane) receive_complete(in_lane(turn, lane));
  }

  void receive_complete(const TimeStep& turn) {
    for (int step = 1; step < levels_.hosts(); ++step) {
      const int host = levels_.around(levels_.host() - step);
      const Block taken = piece(levels_.partner(host), turn.piece);
      const Position place = is_root() ? output_at(taken.offset) : published(turn, host);
      part_.receive(levels_.partner(host), place, taken.count);
      give_to_root(turn, host);
    }
  }

  /// Registered: stores the block in the root's output. Staged: nothing, since the root fetches it.
  void give_to_root(const TimeStep& turn, int host) {
    if (!is_registered_ || is_root()) return;
    const Block block = piece(levels_.partner(host), turn.piece);
    part_.copy(on(levels_.self(), published(turn, host)),
               on(problem_.root, output_at(block.offset)),
               block.count);
  }

  /// Fetches what the other ranks of the root's host published at that turn.
  void collect(const TimeStep& turn) {
    if (!is_root() || !ends_lap(turn)) return;
    for (int lane = 0; lane < cut_.lanes; ++lane) {
      for (const int index : levels_.neighbours()) fetch_published(in_lane(turn, lane), index);
    }
  }

  void fetch_published(const TimeStep& turn, int index) {
    for (int host = 0; host < levels_.hosts(); ++host) {
      const Block taken = piece(levels_.rank(host, index), turn.piece);
      part_.fetch(
          levels_.neighbour(index), published(turn, host), output_at(taken.offset), taken.count);
    }
  }

  const Problem& problem_;
  Levels levels_;
  bool gathers_;
  bool is_registered_;
  Blocks blocks_;
  Cut cut_;
  Builder part_;
};

}  // namespace

bool can_reduce_by_blocks(const Problem& problem) {
  const Cut cut = cut_of(problem);
  const bool fits = cut.pieces > 0;
  const bool is_never_reused = cut.pieces <= cut.lanes;
  return fits && (is_never_reused || blocks_of(problem).smallest() >= Elements(cut.pieces));
}

Part reduce_by_blocks(const Problem& problem, Rank self) { return Reduction(problem, self).plan(); }

}  // namespace peal::plan::two_level
