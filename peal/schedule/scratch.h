// Assigns each operation of a group its place in the scratch memory, where the operation stages
// data. The engine and the verifier use the same class, so the engine does what was proved.
//
// Each operation gets a place of its own: the next piece of a ring or, for few bytes, a cell beside
// the rank's counter. So an operation does not wait for the previous one to be read. It waits only
// for earlier operations that used the same place, or the same bank of cells: Wait with value 0.
#pragma once

#include <cstdint>
#include <vector>

#include "peal/base/fifo.h"
#include "peal/base/units.h"

namespace peal::schedule {

/// The sizes of the scratch memory of one rank. All ranks of a host have the same.
struct ScratchSize {
  Bytes ring;  // a multiple of Scratch::kGrain
  Bytes cell;  // size of each cell; 0: no cells
  int cells =
      2;  // number of cells, so of operations that have one at the same time; a power of two

  friend bool operator==(const ScratchSize&, const ScratchSize&) = default;
};

/// The engine's scratch for a ring of this size. The cells are those of transport::Window.
constexpr ScratchSize engine_scratch(Bytes ring) {
  return {.ring = ring, .cell = Bytes(360), .cells = 8};
}

/// Counts the operations of a group that signal, its *turns*, and gives each turn its place. Every
/// rank makes the same calls and so computes the same places.
/// Threads: one at a time.
class Scratch {
 public:
  static constexpr Bytes kGrain{64};

  /// What an operation must wait for before it uses a place. A rank whose counter reached
  /// `counter`, in turn `turn`, has left every earlier operation that used the place.
  struct FreeWhen {
    std::uint64_t turn = 0;
    std::int64_t counter = 0;
  };

  struct Reservation {
    bool is_cell = false;
    /// Offset in the ring, a multiple of kGrain. For a cell: the number of its turn.
    Bytes offset;
    FreeWhen free;
  };

  /// Of the ring, a group uses only a part, so it pays only for the memory that its operations
  /// need. The used part holds at least this many places of the largest size requested so far, or
  /// is the whole ring.
  static constexpr std::int64_t kPlaces = 64;

  explicit Scratch(ScratchSize size);

  /// The most bytes that one operation may stage: a third of the ring. A larger place could overlap
  /// the place of the previous operation, and no counter tells when that operation has ended.
  Bytes limit() const { return kGrain * (size_.ring / (kGrain * 3)); }

  /// 0 for the group's first operation that signals.
  std::uint64_t turn() const { return turn_; }
  /// The value of the counters when the turn begins.
  std::int64_t base() const { return base_; }

  /// The place of this turn. Call at most once in a turn. `stage` is at most limit().
  /// Cost: constant, plus the old places that the new one overwrites.
  Reservation reserve(Bytes stage) {
    if (stage > size_.cell) return place_in_ring(stage);
    if (turn_ / bank_size_ != bank_) enter_bank();
    taken_ = Taken::kCell;
    return {.is_cell = true, .offset = Bytes(static_cast<std::int64_t>(turn_)), .free = bank_free_};
  }

  /// Ends the turn, which has raised the counters by `span` (at least 1).
  void end_turn(std::int64_t span) {
    base_ += span;
    // A rank that signals in the next turn has left this one.
    const FreeWhen free{.turn = turn_ + 1, .counter = base_ + 1};
    if (taken_ == Taken::kCell) free_cell() = free;
    if (taken_ == Taken::kRegion) regions_.back().free = free;
    taken_ = Taken::kNothing;
    ++turn_;
  }

 private:
  struct Region {
    std::int64_t begin;  // in the units of cursor_
    FreeWhen free;
  };

  Reservation place_in_ring(Bytes stage);
  void lengthen_lap(std::int64_t length);
  void enter_bank();
  FreeWhen& free_cell() { return cells_free_[turn_ & (cells_free_.size() - 1)]; }

  ScratchSize size_;
  std::uint64_t turn_ = 0;
  std::int64_t base_ = 0;
  std::int64_t lap_ = 0;              // size of the part of the ring in use, from its beginning
  std::int64_t cursor_ = 0;           // position in the ring, plus all laps before
  Fifo<Region> regions_;              // regions of the last lap, in order
  FreeWhen overwritten_;              // of the newest region that has been overwritten
  std::vector<FreeWhen> cells_free_;  // by cell
  // Ranks wait for cells by banks of half the cells. So a rank that runs ahead reads the counters
  // of its peers, and takes their cache lines, once for each bank and not in each turn.
  std::uint64_t bank_size_;
  std::uint64_t bank_ = 0;  // the last bank in which a cell was taken; counts over all laps
  FreeWhen bank_free_;      // of the bank's cells, in the lap before
  enum class Taken : std::uint8_t { kNothing, kCell, kRegion } taken_ = Taken::kNothing;
};

/// The most bytes that one operation can stage in the engine, with PEAL_STAGE=`stage`. Ranks that
/// share memory stage several operations at once. The engine rounds the stage up to pages, so it
/// could stage almost a page more.
inline Bytes engine_stage_limit(Bytes stage, int ranks_per_host) {
  return ranks_per_host == 1 ? stage : Scratch(engine_scratch(stage)).limit();
}

}  // namespace peal::schedule
