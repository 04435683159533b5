// Writes one rank's part of a schedule, a call for each step. Planners use it so that they read
// like the description of their algorithm.
#pragma once

#include <cstdint>
#include <map>

#include "peal/schedule/schedule.h"

namespace peal::plan {

/// A place in the own memory.
struct Place {
  schedule::Space space = schedule::Space::kInput;
  Elements offset = {};

  /// The place `distance` elements further on.
  Place operator+(Elements distance) const { return {space, offset + distance}; }
};

constexpr Place input_at(Elements offset) { return {schedule::Space::kInput, offset}; }
constexpr Place output_at(Elements offset) { return {schedule::Space::kOutput, offset}; }
constexpr Place stage_at(Elements offset) { return {schedule::Space::kStage, offset}; }

inline constexpr Place kInput = input_at(Elements(0));
inline constexpr Place kOutput = output_at(Elements(0));

/// The same place on each of some ranks of the own host.
constexpr schedule::Slice on(schedule::Ranks ranks, Place place) {
  return {place.space, ranks, place.offset};
}
constexpr schedule::Slice on(Rank rank, Place place) { return on(schedule::Ranks{rank}, place); }

/// Which operand of a receive_and_reduce comes first. It decides the bits, so that ranks which
/// compute the same value must agree about it.
enum class First : std::uint8_t { kOwn, kPeer };

/// What is reduced: a value of this rank, or the next message of a peer.
struct Value {
  Place place = {};
  schedule::Holds holds = schedule::Holds::kContribution;
};
struct Message {
  Rank peer = 0;
  schedule::Holds holds = schedule::Holds::kContribution;
};

constexpr schedule::Holds partial_if(bool is_partial) {
  return is_partial ? schedule::Holds::kPartial : schedule::Holds::kContribution;
}

/// Moves of no elements are left out: where a count is zero there is nothing to do.
/// Before the first step that writes the own stage the builder adds a Wait that looks back: until
/// no other rank can still read what an earlier operation left there. Where nobody signals, the
/// stage is the rank's own and there is nothing to wait for.
class Builder {
 public:
  Builder(const schedule::Problem& problem, Rank self);

  // ---- messages: what is sent to a peer is received there in the same order and sizes
  void send(Place from, Rank peer, Elements count);
  void receive(Rank peer, Place to, Elements count);
  /// to = own op message, or message op own.
  void receive_and_reduce(
      Message message, Value own, Place to, Elements count, First first, schedule::Finish finish);
  /// A message that says nothing but that it came; only for barriers. Tokens use the beginning of
  /// the stage, kTokenStage elements of it.
  void send_token(Rank peer);
  void receive_token(Rank peer);
  static constexpr Elements kTokenStage{2};

  // ---- memory
  void copy(Place from, Place to, Elements count);
  void copy(schedule::Slice from, schedule::Slice to, Elements count);
  /// From the memory of a rank of the own host.
  void fetch(Rank rank, Place from, Place to, Elements count);
  /// to = a op b.
  void reduce(Value a, Value b, Place to, Elements count, schedule::Finish finish);
  /// Any Move.
  void move(InlineVector<schedule::Slice, 3> from,
            InlineVector<schedule::Slice, 2> to,
            Elements count,
            schedule::Finish finish = schedule::Finish::kNo);

  /// The place on each other rank of the host.
  InlineVector<schedule::Slice, 2> others(Place place) const;
  /// In rank order: `own` of this rank, `theirs` of each other rank of the host.
  InlineVector<schedule::Slice, 3> others_and(Place own, Place theirs) const;

  // ---- counters
  void signal(std::int64_t value);
  void wait(Rank rank, std::int64_t value) { wait(schedule::Ranks{rank}, value); }
  void wait(schedule::Ranks ranks, std::int64_t value);
  /// For the other ranks of the host.
  void wait_for_others(std::int64_t value);
  /// Signals, and waits until all ranks of the host have: a synchronisation.
  void meet(std::int64_t value);

  /// The part; it advances the counters to the last signal. `stage` is what any rank touches.
  schedule::Part build(Elements stage = Elements(0)) &&;

 private:
  schedule::Slice own(Place place) const { return on(self_, place); }
  schedule::Slice own(Value value) const {
    return {value.place.space, schedule::Ranks{self_}, value.place.offset, value.holds};
  }
  schedule::Slice wire_to(Rank peer, Elements count);
  schedule::Slice wire_from(Rank peer, Elements count);
  schedule::Ranks below() const { return {host_.first, self_ - host_.first}; }
  schedule::Ranks above() const { return {self_ + 1, host_.first + host_.count - (self_ + 1)}; }
  /// The other ranks of the host, and the own one only where a progression cannot leave it out.
  schedule::Ranks neighbours() const;
  void claim_stage();
  bool writes_own_stage(const schedule::Move& move) const;

  schedule::Ranks host_;
  Rank self_;
  schedule::Part part_;
  bool stage_is_free_ = false;     // nobody can be where earlier operations staged
  std::map<Rank, Elements> sent_;  // to each peer, so far
  std::map<Rank, Elements> received_;
};

}  // namespace peal::plan
