// Where the operations of a group keep what they stage. The engine and the verifier ask the same
// value, so that what was proved is what happens.
//
// Each operation gets a place of its own, the next one of a ring, or where little is staged a cell
// beside the counter that says it is there; so an operation need not wait for the one before to be
// read. It has to wait for those only that had the same place, or one of the same bank of cells,
// long ago: Wait with value 0.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "peal/base/units.h"

namespace peal::schedule {

/// How much there is for each rank of a host, the same for all of them.
struct ScratchSize {
  Bytes ring;     // a multiple of Scratch::kGrain
  Bytes cell;     // of each cell; 0 for none
  int cells = 2;  // how many operations have a cell at the same time; a power of two

  friend bool operator==(const ScratchSize&, const ScratchSize&) = default;
};

/// What the engine has beside a ring of that size: the cells of transport::Window.
constexpr ScratchSize engine_scratch(Bytes ring) {
  return {.ring = ring, .cell = Bytes(360), .cells = 8};
}

/// Counts a group's operations that signal, its *turns*, and gives each its place. Every rank asks
/// the same and so gets the same. Threads: one at a time.
class Scratch {
 public:
  static constexpr Bytes kGrain{64};

  /// What to look back for: a rank that has brought its counter there, in that turn, has left every
  /// operation that had the place before.
  struct Look {
    std::uint64_t turn = 0;
    std::int64_t counter = 0;
  };

  struct Place {
    bool is_cell = false;
    /// In the ring; a multiple of kGrain. A cell has the number of its turn.
    Bytes offset;
    Look free;
  };

  /// The part of the ring that is in use has at least so many places of the largest size requested
  /// so far, unless it is the whole ring. The rest is not touched. So a group pays for the memory
  /// that its operations use.
  static constexpr std::int64_t kPlaces = 64;

  explicit Scratch(ScratchSize size);

  /// The most that one operation may stage. A third, so that it never shares a place with the
  /// operation before: of that, nobody would know the end.
  Bytes limit() const { return kGrain * (size_.ring / (kGrain * 3)); }

  /// 0 for the group's first operation that signals.
  std::uint64_t turn() const { return turn_; }
  /// Where the counters stand when the turn begins.
  std::int64_t base() const { return base_; }

  /// The turn's place; at most once in a turn. `stage` is at most limit().
  /// Cost: constant, but for the places that it takes over.
  Place place(Bytes stage) {
    if (stage > size_.cell) return place_in_ring(stage);
    if (turn_ / bank_size_ != bank_) enter_bank();
    taken_ = Taken::kCell;
    return {.is_cell = true, .offset = Bytes(static_cast<std::int64_t>(turn_)), .free = bank_free_};
  }

  /// The turn is over, and has brought the counters `span` further, at least by 1.
  void end_turn(std::int64_t span) {
    base_ += span;
    // Who signals in the next turn has left this one.
    const Look free{.turn = turn_ + 1, .counter = base_ + 1};
    if (taken_ == Taken::kCell) free_cell() = free;
    if (taken_ == Taken::kRegion) regions_.back().free = free;
    taken_ = Taken::kNothing;
    ++turn_;
  }

 private:
  struct Region {
    std::int64_t begin;  // counted as cursor_ is
    Look free;
  };

  Place place_in_ring(Bytes stage);
  void lengthen_lap(std::int64_t length);
  void enter_bank();
  Look& free_cell() { return cells_free_[turn_ & (cells_free_.size() - 1)]; }

  ScratchSize size_;
  std::uint64_t turn_ = 0;
  std::int64_t base_ = 0;
  std::int64_t lap_ = 0;          // how much of the ring is in use, from its beginning
  std::int64_t cursor_ = 0;       // in the ring, plus all laps before
  std::deque<Region> regions_;    // of the last lap, in order
  Look overwritten_;              // of the last region that is in it no more
  std::vector<Look> cells_free_;  // by cell
  // Cells are waited for by banks, half of them each: who runs ahead of the others looks for them,
  // and takes the line of their counter from them, once in a bank and not in each turn.
  std::uint64_t bank_size_;
  std::uint64_t bank_ = 0;  // the last one in which a cell was taken, laps and all
  Look bank_free_;          // of its cells, in the lap before
  enum class Taken : std::uint8_t { kNothing, kCell, kRegion } taken_ = Taken::kNothing;
};

}  // namespace peal::schedule
