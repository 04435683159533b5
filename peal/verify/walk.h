// Runs a sequence of schedules on symbols instead of numbers, as its ranks would, and notes what is
// wrong. One run proves all: ranks only wait for counters that never fall and for streams in order,
// so if no two accesses are unordered, every interleaving computes the same.
//
// The model. Each rank walks its steps in order. A send hands its source to the link's own sender,
// which reads it at some moment until the matching receive has ended, and at the latest before the
// rank's operation ends. A Signal releases what its rank knows; a Wait acquires the first signal
// that satisfies it, since it may see no later one; a receive acquires its send. Before the
// operation the user has written input and output, after it the user may do so again.
//
// Around the sequence stand unknown operations, so that what is accepted alone is right in any row:
// - Before: every rank of the host has read every stage, and has said so by its last signal.
//   The stage's owner may have used it until it begins the sequence.
// - After: the stage's owner writes it, once it has ended and has seen the others' last signals.
// Why that suffices: take two accesses to one stage in different operations. If the earlier is the
// owner's own, it is over when the owner begins the later operation, and "before" demands that the
// later access comes after that. If it is another rank's, "after" demands a later signal of that
// rank in the same operation, and "before" that the later access comes after the last signal.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "peal/verify/clock.h"
#include "peal/verify/expression.h"
#include "peal/verify/memory.h"
#include "peal/verify/verify.h"

namespace peal::verify {

/// Needs schedules of one group that `check_form` has found right. Used once.
class Walk {
 public:
  explicit Walk(std::span<const schedule::Schedule> schedules);

  /// Stops when `most` things are wrong.
  std::vector<Violation> run(std::size_t most);

 private:
  /// A rank's buffers in one operation, from its beginning on.
  struct Buffers {
    std::vector<Memory> memories;  // one where input and output share it, else input and output
    Elements input_begin;
    Elements output_begin;
    Event begun;
  };

  struct Announcement {
    std::int64_t value = 0;
    Event event;
    Clock clock;
    Site site;
    bool awaited = false;
  };

  struct Runner {
    Clock clock;
    std::int64_t time = 0;
    int operation = 0;
    int step = -1;                            // -1: the operation has not begun
    std::vector<Announcement> announcements;  // by value, ascending
  };

  struct Message {
    int operation = 0;
    Elements position;
    Elements count;
    Content content;
    Clock clock;
    Site site;
  };

  struct Link {
    Event last_sent;
    std::deque<Message> messages;
    std::map<int, Elements> sent;      // by operation
    std::map<int, Elements> received;  // by operation
  };

  struct Place {
    Memory* memory = nullptr;
    Range range;
    schedule::Space space{};
    Rank owner = 0;
  };

  enum class Progress : std::uint8_t { kStuck, kMoved };

  // The walk.
  Progress advance(Rank rank);
  Progress step(Rank rank, const schedule::Move& move);
  Progress step(Rank rank, const schedule::Signal& signal);
  Progress step(Rank rank, const schedule::Wait& wait);
  void begin(Rank rank);
  void end(Rank rank);
  void send(Rank rank, const schedule::Move& move);
  std::optional<Content> receive(Rank rank, const schedule::Slice& from, Elements count);
  Content load(const Place& place, const Access& by);
  void store(const Place& place, const Content& content, const Access& by);

  // What is left to say when all ranks stand still.
  void check_stuck(Rank rank);
  void check_barrier(Rank rank);
  void check_output(Rank rank);
  void check_same_bits(int operation);
  void check_stages();
  void check_leftovers();

  const schedule::Schedule& schedule_of(const Site& site) const;
  Runner& runner(Rank rank) { return runners_[static_cast<std::size_t>(rank)]; }
  Site site(Rank rank) const;
  std::int64_t base(int operation) const { return bases_[static_cast<std::size_t>(operation)]; }
  Event now(Rank rank) { return {rank, runner(rank).time}; }
  Link& link(Rank from, Rank to);
  std::optional<Buffers>& buffers(int operation, Rank rank);
  std::optional<Place> place(Rank self, const schedule::Slice& slice, Rank owner, Elements count);
  Announcement* announcement(Rank rank, std::int64_t value);
  void report(const Site& site, std::string what);
  void report_race(const Place& place, const Access& by, const Access& other);

  std::span<const schedule::Schedule> schedules_;
  std::vector<std::int64_t> bases_;  // by operation, and one for what follows
  Expressions expressions_;
  std::vector<Runner> runners_;
  std::vector<Memory> stages_;
  std::vector<std::vector<std::optional<Buffers>>> buffers_;  // by operation and rank
  std::map<std::pair<Rank, Rank>, Link> links_;
  std::vector<Violation> violations_;
};

}  // namespace peal::verify
