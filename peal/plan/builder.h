// Writes one rank's part of a schedule: one call for each step. With it, a planner reads like the
// description of its algorithm.
#pragma once

#include <cstdint>
#include <map>

#include "peal/schedule/problem.h"
#include "peal/schedule/schedule.h"

namespace peal::plan {

/// A place in this rank's memory.
struct Position {
  schedule::Space space = schedule::Space::kInput;
  Elements offset = {};

  /// The place `distance` elements further on.
  Position operator+(Elements distance) const { return {space, offset + distance}; }
};

constexpr Position input_at(Elements offset) { return {schedule::Space::kInput, offset}; }
constexpr Position output_at(Elements offset) { return {schedule::Space::kOutput, offset}; }
constexpr Position stage_at(Elements offset) { return {schedule::Space::kStage, offset}; }

inline constexpr Position kInput = input_at(Elements(0));
inline constexpr Position kOutput = output_at(Elements(0));

/// The same place in the memory of each of several ranks of this host.
constexpr schedule::Slice on(schedule::Ranks ranks, Position place) {
  return {place.space, ranks, place.offset};
}
constexpr schedule::Slice on(Rank rank, Position place) { return on(schedule::Ranks{rank}, place); }

/// Which operand of a receive_and_reduce comes first. The order determines the bits of the result,
/// so ranks that compute the same value must use the same order.
enum class First : std::uint8_t { kOwn, kPeer };

/// The operands of a reduction: a value of this rank, or the next message of a peer.
struct Value {
  Position place = {};
  schedule::Holds holds = schedule::Holds::kContribution;
};
struct Message {
  Rank peer = 0;
  schedule::Holds holds = schedule::Holds::kContribution;
};

constexpr schedule::Holds partial_if(bool is_partial) {
  return is_partial ? schedule::Holds::kPartial : schedule::Holds::kContribution;
}

/// Adds no Move for a count of zero.
/// Before the first step that writes this rank's stage, the builder adds a Wait with value 0: no
/// other rank may still read what an earlier operation staged there. If the part has no signal, the
/// stage belongs to this rank alone, and the builder removes the Wait.
class Builder {
 public:
  /// Borrows the problem.
  Builder(const schedule::Problem& problem, Rank self);

  // ---- messages: the peer receives them in the order and in the sizes in which they were sent
  void send(Position from, Rank peer, Elements count);
  void receive(Rank peer, Position to, Elements count);
  /// to = operand op message, or message op operand.
  void receive_and_reduce(Message message,
                          Value operand,
                          Position to,
                          Elements count,
                          First first,
                          schedule::Finish finish);
  /// A message without content, for barriers only. Tokens use kTokenStage elements at the beginning
  /// of the stage.
  void send_token(Rank peer);
  void receive_token(Rank peer);
  static constexpr Elements kTokenStage{2};

  // ---- memory
  void copy(Position from, Position to, Elements count);
  void copy(schedule::Slice from, schedule::Slice to, Elements count);
  /// Copies from the memory of another rank of this host.
  void fetch(Rank rank, Position from, Position to, Elements count);
  /// to = a op b.
  void reduce(Value a, Value b, Position to, Elements count, schedule::Finish finish);
  /// Any Move.
  void move(schedule::InlineVector<schedule::Slice, 3> from,
            schedule::InlineVector<schedule::Slice, 2> to,
            Elements count,
            schedule::Finish finish = schedule::Finish::kNo);

  /// The place in the memory of each other rank of the host.
  schedule::InlineVector<schedule::Slice, 2> others(Position place) const;
  /// In rank order: `mine` in this rank's memory, and `theirs` in that of each other rank of the
  /// host.
  schedule::InlineVector<schedule::Slice, 3> others_and(Position mine, Position theirs) const;

  // ---- counters
  /// Adds the opening (schedule/opening.h). Only as the first step. The values of later signals and
  /// waits count from the end of the opening.
  void open();
  void signal(std::int64_t value);
  void wait(Rank rank, std::int64_t value) { wait(schedule::Ranks{rank}, value); }
  void wait(schedule::Ranks ranks, std::int64_t value);
  /// Waits for the other ranks of the host.
  void wait_for_others(std::int64_t value);
  /// Signals, and waits until all ranks of the host have signalled: a synchronisation.
  void meet(std::int64_t value);

  /// The finished part. `stage` is how much of the stage any rank touches.
  schedule::Part build(Elements stage = Elements(0)) &&;

 private:
  schedule::Slice own(Position place) const { return on(self_, place); }
  schedule::Slice own(Value value) const {
    return {value.place.space, schedule::Ranks{self_}, value.place.offset, value.holds};
  }
  schedule::Slice wire_to(Rank peer, Elements count);
  schedule::Slice wire_from(Rank peer, Elements count);
  schedule::Ranks below() const { return {host_.first, self_ - host_.first}; }
  schedule::Ranks above() const { return {self_ + 1, host_.first + host_.count - (self_ + 1)}; }
  /// The other ranks of the host. Includes this rank only if a progression cannot skip it.
  schedule::Ranks neighbours() const { return schedule::other_ranks_of_host(problem_, self_); }
  void claim_stage();
  bool writes_own_stage(const schedule::Move& move) const;

  const schedule::Problem& problem_;
  schedule::Ranks host_;
  Rank self_;
  schedule::Part part_;
  bool stage_is_free_ = false;     // no other rank still reads what earlier operations staged
  std::int64_t opened_ = 0;        // the last value of the opening
  std::map<Rank, Elements> sent_;  // to each peer, so far
  std::map<Rank, Elements> received_;
};

}  // namespace peal::plan
