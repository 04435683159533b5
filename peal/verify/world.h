// All that the walk keeps about ranks, memory and links while it runs schedules on symbols. The
// walk changes it, and the outcome is read from it.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "peal/schedule/scratch.h"
#include "peal/verify/clock.h"
#include "peal/verify/expression.h"
#include "peal/verify/memory.h"
#include "peal/verify/verify.h"

namespace peal::verify {

/// A rank's buffers in one operation.
struct Buffers {
  std::vector<Memory> memories;  // one where input and output share it, else input and output
  Elements input_begin;
  Elements output_begin;
  Event begun;

  Memory& input() { return memories.front(); }
  Memory& output() { return memories.back(); }
};

/// A signal, and what its rank knew.
struct Announcement {
  std::int64_t counter = 0;  // since the sequence began
  Site site;
  Event event;
  Clock clock;
};

struct Message {
  Elements position;
  Elements count;
  Site site;
  Content content;
  Clock clock;
};

/// What is on its way from one rank to another.
struct Link {
  Event last_read;  // by the link's sender, of a message's source
  std::deque<Message> messages;
  std::map<int, Elements> sent;  // by operation
};

/// Where a rank stands.
struct Runner {
  Clock clock;
  std::int64_t time = 0;
  int operation = 0;
  int step = -1;                            // -1: the operation has not begun
  std::vector<Announcement> announcements;  // ascending
};

/// Where an operation stages.
struct Staging {
  /// In the scratch that the group's operations share; nothing where it signals nothing, so that
  /// each rank has a stage to itself.
  std::optional<Elements> begin;
  std::int64_t free_at = 0;  // the counter, since the sequence began, of who has left the place
  std::vector<Memory> own;   // by rank, where it is not shared
};

/// A slice, on one of its ranks.
struct Place {
  schedule::Space space{};
  Rank owner = 0;
  Elements offset;
  Elements count;
};

struct World {
  /// The state before the first operation. Needs schedules that `check_form` has found right.
  World(std::span<const schedule::Schedule> schedules, const schedule::ScratchSize& size);

  std::span<const schedule::Schedule> schedules;
  std::vector<std::int64_t> bases;  // of the counters, by operation, and one for what follows
  std::vector<Runner> runners;      // by rank
  std::vector<std::vector<std::optional<Buffers>>> buffers;  // by operation and rank, once begun
  std::vector<Memory> scratch;                               // by rank
  std::vector<Staging> stagings;                             // by operation
  std::map<std::pair<Rank, Rank>, Link> links;               // by sender and receiver
  Expressions expressions;
  std::vector<Violation> violations;

  int ranks() const { return static_cast<int>(runners.size()); }
  int operations() const { return static_cast<int>(schedules.size()); }
  const schedule::Problem& problem(int operation) const;
  const schedule::Part& part(int operation, Rank rank) const;
  Runner& runner(Rank rank) { return runners[static_cast<std::size_t>(rank)]; }
  const Runner& runner(Rank rank) const { return runners[static_cast<std::size_t>(rank)]; }
  Staging& staging(int operation) { return stagings[static_cast<std::size_t>(operation)]; }
  /// Nothing before the rank has begun the operation.
  std::optional<Buffers>& buffers_of(Rank rank, int operation);
  Link& link(Rank from, Rank to);

  /// The step that the rank is at; where its operation ends that is the number of steps.
  Site site(Rank rank) const;
  Event now(Rank rank) const { return {rank, runner(rank).time}; }
  /// What a counter is at least, for a signal or a wait of the operation. 0 looks back.
  std::int64_t counter(int operation, std::int64_t value) const;
  /// The first signal that brings the counter there: the only one that a wait can rely on.
  const Announcement* announcement(Rank rank, std::int64_t counter) const;

  /// A rank reads or writes a place; what is wrong with that is reported.
  Content load(const Place& place, const Access& by);
  void store(const Place& place, const Content& content, const Access& by);
  void report(const Site& site, std::string what);
  void report_race(const Place& place, const Access& by, const Access& other);
};

}  // namespace peal::verify
