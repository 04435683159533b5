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
  void enter(const Fingerprint& fingerprint, std::uint64_t place, Compare compare);
  /// From here on values are those of a part, which come after so many other signals.
  void begin_part(std::int64_t signals_before) { before_ = signals_before; }
  /// Finds the operation's place, of so many bytes, and puts it into `places`.
  void place_stage(Bytes stage, Places& places);
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
  /// operation stages. Asked again, it goes on with the rank that was not there. Throws mismatch.
  bool reached(const schedule::Ranks& ranks, std::int64_t value);

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
  Counter target_of(std::int64_t value) const;
  void compare(Rank rank);

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
