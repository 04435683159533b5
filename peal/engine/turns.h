// What a rank says to the others of its host by the window's counters and hears of them, and where
// operations stage in the window. Used by walk.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "peal/engine/fingerprint.h"
#include "peal/engine/places.h"
#include "peal/schedule/schedule.h"
#include "peal/schedule/scratch.h"
#include "peal/transport/window.h"

namespace peal::engine {

/// How a rank that is first seen inside an operation is compared with the own one: by the word
/// beside its counter, or by its whole entry.
enum class Compare : std::uint8_t { kChecks, kEntries };

/// Threads: one at a time.
class Turns {
 public:
  /// `check_entry(rank)` is called for a rank that may be in another operation, and throws mismatch
  /// if it is.
  Turns(Rank self, int ranks, transport::Window& window, std::function<void(Rank)> check_entry);

  /// The ranks that the window reaches.
  const schedule::Ranks& host() const { return host_; }
  /// The most that an operation may stage.
  Bytes stage_limit() const { return scratch_.limit(); }

  /// Enters an operation. `place` is what the others are to read beside the counter.
  void enter(const Fingerprint& fingerprint, std::uint64_t place, Compare compare) {
    fingerprint_ = fingerprint;
    remark_ = {.check = fingerprint.detail, .place = place};
    compare_ = compare;
    before_ = 0;
    waited_ = 0;
  }
  /// From here on values are those of a part, which come after so many other signals.
  void begin_part(std::int64_t signals_before) { before_ = signals_before; }
  /// Finds the operation's place, of so many bytes, and puts it into `places`.
  void place_stage(Bytes stage, Places& places) {
    const schedule::Scratch::Place place = scratch_.place(stage);
    free_ = place.free;
    if (stage.value == 0) return;
    const std::vector<std::byte*>& stages = place.is_cell ? cells_ : rings_;
    const std::ptrdiff_t offset = place.is_cell ? transport::Window::cell_offset(scratch_.turn())
                                                : static_cast<std::ptrdiff_t>(place.offset.value);
    for (int i = 0; i < host_.count; ++i) {
      places.set(schedule::Space::kStage, host_[i], stages[static_cast<std::size_t>(i)] + offset);
    }
  }
  /// The part, of this span, is over. An operation that gave no signal had no turn.
  void end(std::int64_t span) {
    if (span + before_ > 0) scratch_.end_turn(span + before_);
  }

  void signal(std::int64_t value) {
    const std::int64_t counter = scratch_.base() + before_ + value;
    window_.signal(scratch_.turn(), static_cast<std::uint64_t>(counter), remark_);
    window_.prepare(scratch_.turn() + 1);
  }

  /// Whether all of them have given the signal, or for 0 have left what was staged where this
  /// operation stages: its place in the ring, or all cells of its bank. Asked again, it goes on
  /// with the rank that was not there. Throws mismatch.
  bool reached(const schedule::Ranks& ranks, std::int64_t value) {
    const Counter target = target_of(value);
    for (; waited_ < ranks.count; ++waited_) {
      const Rank rank = ranks[waited_];
      if (rank == self_) continue;
      auto& known = known_[static_cast<std::size_t>(rank)];
      if (known < target.value) {
        const std::uint64_t counter = window_.counter(rank, target.turn);
        if (counter < target.value) return false;
        known = counter;
      }
      // A look back finds ranks that need not be in this operation yet.
      if (value > 0 && !heard_from(rank)) compare(rank);
    }
    waited_ = 0;
    return true;
  }

  /// What to sleep on.
  struct Counter {
    Rank rank = 0;
    std::uint64_t turn = 0;
    std::uint64_t value = 0;
  };
  /// Of the rank that `reached` has found missing.
  Counter missing(const schedule::Ranks& ranks, std::int64_t value) const;
  /// Appends all that are missing at this moment.
  void append_missing(const schedule::Ranks& ranks,
                      std::int64_t value,
                      std::vector<Rank>& missing) const;

  /// What a rank that has begun says of its place; nothing if it has gone on since.
  std::optional<std::uint64_t> place_of(Rank rank) const;
  /// Whether the rank has been seen inside the operation.
  bool heard_from(Rank rank) const {
    return seen_[static_cast<std::size_t>(rank)] == fingerprint_.sequence;
  }

 private:
  Counter target_of(std::int64_t value) const {
    if (value == 0) {
      return {.turn = free_.turn, .value = static_cast<std::uint64_t>(free_.counter)};
    }
    const std::int64_t counter = scratch_.base() + before_ + value;
    return {.turn = scratch_.turn(), .value = static_cast<std::uint64_t>(counter)};
  }
  void compare(Rank rank) {
    if (compare_ == Compare::kEntries ||
        window_.remark(rank, scratch_.turn()).check != remark_.check) {
      check_entry_(rank);  // which may have gone on since
    }
    seen_[static_cast<std::size_t>(rank)] = fingerprint_.sequence;
  }

  Rank self_;
  transport::Window& window_;
  std::function<void(Rank)> check_entry_;
  schedule::Ranks host_;
  schedule::Scratch scratch_;
  std::vector<std::byte*> rings_;     // the host's ranks' scratch
  std::vector<std::byte*> cells_;     // and their first cells
  std::vector<std::uint64_t> known_;  // by rank: the largest value of its counter seen so far
  std::vector<std::uint64_t> seen_;   // by rank: the last operation in which it was seen inside

  // the operation
  Fingerprint fingerprint_;
  transport::Window::Remark remark_;
  Compare compare_ = Compare::kChecks;
  std::int64_t before_ = 0;       // signals that are not the part's
  schedule::Scratch::Look free_;  // what its stage waits for
  int waited_ = 0;                // of the ranks asked for, how many are there
};

}  // namespace peal::engine
