// How the ranks of a host synchronise by the counters of the window, and where operations stage in
// the window. Used by execution.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "peal/engine/buffer_addresses.h"
#include "peal/engine/fingerprint.h"
#include "peal/schedule/schedule.h"
#include "peal/schedule/scratch.h"
#include "peal/transport/window/window.h"

namespace peal::engine {

/// How this rank compares its operation with that of a rank that it first sees in the operation: by
/// the word beside the rank's counter, or by the rank's whole entry.
enum class Compare : std::uint8_t { kChecks, kEntries };

/// Threads: one at a time.
class Turns {
 public:
  /// `check_entry(rank)` is called for a rank that may be in another operation. It throws mismatch
  /// if the rank is.
  Turns(Rank self, int ranks, transport::Window& window, std::function<void(Rank)> check_entry);

  /// The most that an operation may stage.
  Bytes stage_limit() const { return scratch_.limit(); }

  /// Enters an operation. `place` is published to the other ranks beside the counter.
  void enter(const Fingerprint& fingerprint, std::uint64_t place, Compare compare) {
    sequence_ = fingerprint.sequence;
    remark_ = {.check = fingerprint.detail, .place = place};
    compare_ = compare;
    waited_ = 0;
  }
  /// Finds the staging place of the operation, of `stage` bytes, and stores it in `addresses`.
  void place_stage(Bytes stage, BufferAddresses& addresses) {
    const schedule::Scratch::Reservation place = scratch_.reserve(stage);
    free_ = place.free;
    if (stage.value == 0) return;
    const std::vector<std::byte*>& stages = place.is_cell ? cells_ : rings_;
    const std::ptrdiff_t offset = place.is_cell ? transport::Window::cell_offset(scratch_.turn())
                                                : static_cast<std::ptrdiff_t>(place.offset.value);
    for (int i = 0; i < host_.count; ++i) {
      addresses.set(
          schedule::Space::kStage, host_[i], stages[static_cast<std::size_t>(i)] + offset);
    }
  }
  /// Ends a part with this span. An operation without signals is not a turn.
  void end(std::int64_t span) {
    if (span > 0) scratch_.end_turn(span);
  }

  void signal(std::int64_t value) {
    const std::int64_t counter = scratch_.base() + value;
    window_.signal(scratch_.turn(), static_cast<std::uint64_t>(counter), remark_);
    window_.prepare(scratch_.turn() + 1);
  }

  /// Whether all `ranks` have given the signal. For the value 0: whether all have left the earlier
  /// operations that used this staging place (in the ring) or its bank (of cells). A repeated call
  /// continues with the rank that was missing. Throws mismatch.
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
      // After a wait for 0, ranks need not be in this operation yet.
      if (value > 0 && !has_seen(rank)) compare(rank);
    }
    waited_ = 0;
    return true;
  }

  /// A counter to sleep on.
  struct Counter {
    Rank rank = 0;
    std::uint64_t turn = 0;
    std::uint64_t value = 0;
  };
  /// The counter of the rank that `reached` has found missing.
  Counter missing(const schedule::Ranks& ranks, std::int64_t value) const;
  /// Appends all ranks that are missing now.
  void append_missing(const schedule::Ranks& ranks,
                      std::int64_t value,
                      std::vector<Rank>& missing) const;

  /// The place that the rank has published in this operation; nothing if the rank has gone on
  /// since.
  std::optional<std::uint64_t> place_of(Rank rank) const;
  /// Whether this rank has seen the other rank in the operation.
  bool has_seen(Rank rank) const { return seen_[static_cast<std::size_t>(rank)] == sequence_; }

 private:
  Counter target_of(std::int64_t value) const {
    if (value == 0) {
      return {.turn = free_.turn, .value = static_cast<std::uint64_t>(free_.counter)};
    }
    const std::int64_t counter = scratch_.base() + value;
    return {.turn = scratch_.turn(), .value = static_cast<std::uint64_t>(counter)};
  }
  void compare(Rank rank) {
    if (compare_ == Compare::kEntries ||
        window_.remark(rank, scratch_.turn()).check != remark_.check) {
      check_entry_(rank);  // the rank may have gone on since
    }
    seen_[static_cast<std::size_t>(rank)] = sequence_;
  }

  Rank self_;
  transport::Window& window_;
  std::function<void(Rank)> check_entry_;
  schedule::Ranks host_;
  schedule::Scratch scratch_;
  std::vector<std::byte*> rings_;     // the scratch rings of the host's ranks
  std::vector<std::byte*> cells_;     // their first cells
  std::vector<std::uint64_t> known_;  // by rank: the largest counter seen so far
  std::vector<std::uint64_t> seen_;   // by rank: the last operation in which it was seen

  // the operation
  std::uint64_t sequence_ = 0;
  transport::Window::Remark remark_;
  Compare compare_ = Compare::kChecks;
  schedule::Scratch::FreeWhen free_;  // what its staging place waits for
  int waited_ = 0;                    // how many of the requested ranks have reached the value
};

}  // namespace peal::engine
