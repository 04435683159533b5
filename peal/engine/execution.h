// Executes one rank's part of a schedule over a transport. A state machine without a thread, driven
// by `collective`. It reads the clock only to measure copies.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "peal/engine/buffer_addresses.h"
#include "peal/engine/fingerprint.h"
#include "peal/engine/inbox.h"
#include "peal/engine/outbox.h"
#include "peal/engine/pace.h"
#include "peal/engine/plan_cache.h"
#include "peal/engine/turns.h"
#include "peal/kernels/watched_copy.h"
#include "peal/transport/transport.h"

namespace peal::engine {

enum class Progress : std::uint8_t { kDone, kMoved, kBlocked };

/// What a blocked execution can sleep on: the interests, and a counter of the window if set.
struct Blocked {
  std::vector<transport::Interest> interests;
  bool holds_back = false;  // there are bytes to send that must not leave yet; see raise_limit
  std::optional<Turns::Counter> counter;
};

/// Threads: one at a time.
class Execution {
 public:
  /// `check_entry(rank)` is called for a rank of the window that may be in another operation. It
  /// throws mismatch if the rank is.
  Execution(Rank self,
            int ranks,
            transport::Transport& transport,
            std::function<void(Rank)> check_entry);

  /// The most that an operation may stage in the window; nothing without a window.
  std::optional<Bytes> stage_limit() const {
    return turns_ ? std::optional(turns_->stage_limit()) : std::nullopt;
  }

  /// Enters an operation. `place` is published to the other ranks beside the counter.
  void enter(const Fingerprint& fingerprint, std::uint64_t place, Compare compare);

  /// The place that the rank has published in this operation; nothing if the rank has gone on
  /// since.
  std::optional<std::uint64_t> place_of(Rank rank) const { return turns_->place_of(rank); }

  /// Starts a part of the plan. If its first step is a signal, gives that signal: from then on
  /// peers may read this rank's registered memory. `addresses`, `plan` and `planned` must not
  /// change until the execution is done; the execution itself sets the addresses of stages. For a
  /// part with an `opening`, call `open` next.
  void begin(const CachedPlan& plan, const PlannedPart& planned, BufferAddresses& addresses);
  /// Walks the opening as far as possible without waiting. Returns whether it is done. Then call
  /// `go_on` with the part to continue with. Throws Error(mismatch).
  bool open();
  /// Continues after the opening, with a part that begins with the same opening.
  void go_on(const PlannedPart& planned, BufferAddresses& addresses);

  /// Continues as far as possible without waiting. Throws Error(mismatch) and PeerClosed.
  Progress advance();

  /// What to sleep on, after kBlocked. Valid until the next call of any method.
  const Blocked& blocked();

  /// For an execution that holds bytes back: call when no byte has arrived for a while.
  void raise_limit() { pace_.raise_limit(); }

  /// The ranks that a blocked execution waits for, sorted. Valid until the next call of this.
  const std::vector<Rank>& waiting_for() const;

  /// Whether any byte of this operation has arrived from the peer, or its counter shows it there.
  bool has_seen(Rank peer) const;

  /// Forgets the operation, and does not touch its memory any more.
  void abandon();

 private:
  void place_stage(BufferAddresses& addresses);
  void end();
  /// Executes a whole exchange (PlannedPart::is_exchange). Returns false if it must wait.
  bool exchange();
  /// Executes the steps before `end`. Returns false if one of them must wait.
  bool run_to(std::size_t end);
  bool step();
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
  /// Executes elements [done, done + count) of the move. `wire` holds the elements of the source on
  /// the wire.
  void compute(const schedule::Move& move, Elements done, Elements count, const std::byte* wire);
  /// Executes the current step if every space is in one piece.
  void compute_in_one_piece(const schedule::Move& move);
  void compute(schedule::Finish finish, Elements count);
  void copy(const std::byte* from, std::byte* to, Elements count);
  const schedule::Step* current() const;
  /// The operands of the current step, which is a move.
  const Operands& operands() const { return planned_->moves[at_]; }

  Rank self_;
  transport::Channel& channel_;
  std::optional<Turns> turns_;         // if there is a window
  std::vector<std::byte> own_memory_;  // the stage, if no other rank accesses it

  // the operation
  Fingerprint fingerprint_;
  const CachedPlan* plan_ = nullptr;
  const PlannedPart* planned_ = nullptr;
  const BufferAddresses* addresses_ = nullptr;
  std::size_t at_ = 0;  // step
  bool moved_ = false;  // whether anything moved in this call of advance

  kernels::WatchedCopy stage_copy_;

  std::vector<std::uint64_t> header_sent_;  // by peer: the last operation whose header was sent
  Inbox inbox_;
  Outbox outbox_;
  Pace pace_;
  Blocked blocked_;
  mutable std::vector<Rank> missing_;  // the result of waiting_for
  std::vector<const std::byte*> sources_;
  std::vector<std::byte*> targets_;
};

}  // namespace peal::engine
