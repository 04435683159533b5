// Walks one rank's part of a schedule over a transport: the verb "executed". A state machine that
// owns no thread, and reads the clock for nothing but what its copies take; `collective` drives it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "peal/engine/fingerprint.h"
#include "peal/engine/inbox.h"
#include "peal/engine/outbox.h"
#include "peal/engine/pace.h"
#include "peal/engine/places.h"
#include "peal/engine/recipe.h"
#include "peal/engine/turns.h"
#include "peal/kernels/watched_copy.h"
#include "peal/transport/transport.h"

namespace peal::engine {

enum class Progress : std::uint8_t { kDone, kMoved, kBlocked };

/// What a blocked walk can sleep on: the interests and, where set, a counter of the window.
struct Blocked {
  std::vector<transport::Interest> interests;
  bool holds_back = false;  // there is something to send that must not leave yet; see relent
  std::optional<Turns::Counter> counter;
};

/// Threads: one at a time.
class Walk {
 public:
  /// `check_entry(rank)` is called for a rank of the window that may be in another operation, and
  /// throws mismatch if it is.
  Walk(Rank self,
       int ranks,
       transport::Transport& transport,
       std::function<void(Rank)> check_entry);

  /// The most that an operation may stage in the window; nothing where there is none.
  std::optional<Bytes> stage_limit() const {
    return turns_ ? std::optional(turns_->stage_limit()) : std::nullopt;
  }

  /// Enters an operation. `place` is what the others are to read beside the counter.
  void enter(const Fingerprint& fingerprint, std::uint64_t place, Compare compare);

  /// Tells the window's ranks, by the counter, that this one has entered. All ranks do, or none.
  void announce();
  /// Whether the rank, or all of them, have given their first signal; blocked() says who has not.
  bool has_begun(Rank rank);
  bool all_have_begun();
  /// What a rank that has begun says of its place; nothing if it has gone on since.
  std::optional<std::uint64_t> place_of(Rank rank) const { return turns_->place_of(rank); }

  /// What was done of an operation before its part was known.
  struct Done {
    std::size_t steps = 0;     // of the part: its first ones
    std::int64_t signals = 0;  // besides the part's
  };
  /// Starts on a part of the recipe. `places`, `recipe` and `planned` stay as they are until the
  /// walk is done, but for the places of stages, which are filled in here.
  void begin(const Recipe& recipe, const PlannedPart& planned, Places& places, const Done& done);

  /// Goes as far as it can without waiting. Throws Error(mismatch) and PeerClosed.
  Progress advance();

  /// After kBlocked. Valid until the next call of any method.
  const Blocked& blocked();

  /// For one that holds back what it has to send, when nothing has come for a while.
  void relent() { pace_.relent(); }

  /// The ranks that a blocked walk cannot go on without.
  std::vector<Rank> waiting_for() const;

  /// Whether anything of this operation has come from the peer over the wire.
  bool heard_from(Rank peer) const;

  /// Forgets the operation; its memory is not touched any more.
  void abandon();

 private:
  bool have_begun(const schedule::Ranks& ranks);
  void place_stage(Places& places);
  void end();
  /// The whole of a part that is one; see PlannedPart::is_exchange. False where it has to wait.
  bool exchange();
  bool step(const schedule::Move& move);
  bool step(const schedule::Signal& signal);
  bool step(const schedule::Wait& wait);

  void send(const schedule::Move& move);
  void pump();
  /// How much may be sent now.
  Bytes allowance() const;
  bool receive(const schedule::Move& move);
  bool receive_header(const schedule::Move& move);
  bool receive_straight(const schedule::Move& move);
  bool receive_and_reduce(const schedule::Move& move);
  /// Carries out elements [done, done + count) of the move; `wire` holds the wire source's
  /// elements.
  void compute(const schedule::Move& move, Elements done, Elements count, const std::byte* wire);
  /// The current step, where every space is in one piece.
  void compute_in_one_piece(const schedule::Move& move);
  void compute(schedule::Finish finish, Elements count);
  void copy(const std::byte* from, std::byte* to, Elements count);
  const schedule::Step* current() const;
  /// Of the current step, a move.
  const Operands& operands() const { return planned_->moves[at_]; }

  Rank self_;
  transport::Channel& channel_;
  std::optional<Turns> turns_;         // where there is a window
  std::vector<std::byte> own_memory_;  // what only the own rank stages in

  // the operation
  Fingerprint fingerprint_;
  const Recipe* recipe_ = nullptr;
  const PlannedPart* planned_ = nullptr;
  const Places* places_ = nullptr;
  schedule::Ranks awaited_ = {.count = 0};  // to begin, before the part is known
  std::size_t at_ = 0;                      // step
  bool moved_ = false;                      // anything since the call of advance began

  kernels::WatchedCopy stage_copy_;

  std::vector<std::uint64_t> header_sent_;  // by peer: the last operation in which one left
  Inbox inbox_;
  Outbox outbox_;
  Pace pace_;
  Blocked blocked_;
  std::vector<const std::byte*> sources_;
  std::vector<std::byte*> targets_;
};

}  // namespace peal::engine
