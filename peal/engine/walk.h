// Walks one rank's part of a schedule over a transport: the verb "executed". A state machine that
// owns no thread and reads no clock; `collective` drives it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "peal/engine/fingerprint.h"
#include "peal/engine/outbox.h"
#include "peal/engine/places.h"
#include "peal/engine/planner.h"
#include "peal/transport/transport.h"

namespace peal::engine {

enum class Progress : std::uint8_t { kDone, kMoved, kBlocked };

/// What a blocked walk can sleep on: the interests and, where set, a counter of the window.
struct Blocked {
  struct Counter {
    Rank rank = 0;
    std::uint64_t value = 0;
  };
  std::vector<transport::Interest> interests;
  std::optional<Counter> counter;
};

/// The stream of a peer is closed, in order or not: the driver finds out which.
struct PeerClosed {
  Rank peer = 0;
};

/// Threads: one at a time.
class Walk {
 public:
  Walk(Rank self, int ranks, transport::Transport& transport);

  /// Enters an operation. `check_entry(rank)` is called once for each rank that is first seen
  /// inside it by its counter, and throws mismatch if that rank is in another.
  void enter(const Fingerprint& fingerprint, std::function<void(Rank)> check_entry);

  /// Tells the window's ranks, by the counter, that this one has entered. All ranks do, or none.
  void announce();
  /// Whether all of them have; blocked() says who has not.
  bool all_have_announced();

  /// Starts on the part. `places` and `planned` stay as they are until the walk is done.
  void begin(const PlannedPart& planned, const Places& places);

  /// Goes as far as it can without waiting. Throws Error(mismatch) and PeerClosed.
  Progress advance();

  /// After kBlocked. Valid until the next call of any method.
  const Blocked& blocked();

  /// The ranks that a blocked walk cannot go on without.
  std::vector<Rank> waiting_for() const;

  /// Whether anything of this operation has come from the peer over the wire.
  bool heard_from(Rank peer) const;

  /// Forgets the operation; its memory is not touched any more.
  void abandon();

 private:
  /// What a counter at its target says of its rank.
  enum class Arrived : std::uint8_t { kPerhaps, kInside };
  /// Whether the ranks' counters have reached the target; remembers how far it came in `waited_`.
  bool reached(const schedule::Ranks& ranks, std::uint64_t target, Arrived arrived);
  bool step(const schedule::Move& move);
  bool step(const schedule::Signal& signal);
  bool step(const schedule::Wait& wait);

  void send(const schedule::Move& move);
  bool receive(const schedule::Move& move, const schedule::Slice& wire);
  bool receive_header(Rank peer);
  bool receive_straight(const schedule::Move& move, Rank peer);
  bool receive_and_reduce(const schedule::Move& move, Rank peer);
  /// Carries out elements [done, done + count) of the move; `wire` holds the wire source's
  /// elements.
  void compute(const schedule::Move& move, Elements done, Elements count, const std::byte* wire);
  Bytes take(Rank peer, std::span<std::byte> into);
  const schedule::Step* current() const;

  Rank self_;
  int ranks_;
  transport::Channel& channel_;
  transport::Window* window_;

  // the operation
  Fingerprint fingerprint_;
  const PlannedPart* planned_ = nullptr;
  const Places* places_ = nullptr;
  std::function<void(Rank)> check_entry_;
  std::size_t at_ = 0;      // step
  std::uint64_t base_ = 0;  // of the counters
  int waited_ = 0;          // ranks of the current Wait that are there
  bool moved_ = false;      // anything since the call of advance began

  // the current receive
  Bytes received_;  // of the move, whole elements or not
  std::size_t header_have_ = 0;
  std::array<std::byte, Header::kSize> header_;
  std::vector<std::byte> bounce_;
  std::size_t bounce_have_ = 0;

  // by peer: the last operation in which a header left or came, a counter was seen
  std::vector<std::uint64_t> header_sent_;
  std::vector<std::uint64_t> header_seen_;
  std::vector<std::uint64_t> entry_seen_;

  Outbox outbox_;
  Blocked blocked_;
  std::vector<const std::byte*> sources_;
  std::vector<std::byte*> targets_;
};

}  // namespace peal::engine
