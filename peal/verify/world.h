// All that the walk keeps about ranks, memory and links while it runs schedules on symbols.
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
  std::int64_t value = 0;  // of the counter, since the sequence began
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
  std::vector<Announcement> announcements;  // values ascend
};

/// A slice, on one of its ranks.
struct Place {
  schedule::Space space{};
  Rank owner = 0;
  Elements offset;
  Elements count;
};

class World {
 public:
  /// The state before the first operation. Needs schedules that `check_form` has found right.
  explicit World(std::span<const schedule::Schedule> schedules);

  int ranks() const { return static_cast<int>(runners.size()); }
  int operations() const { return static_cast<int>(schedules.size()); }
  const schedule::Problem& problem(int operation) const;
  const schedule::Part& part(int operation, Rank rank) const;
  /// The step that the rank is at; where its operation ends that is the number of steps.
  Site site(Rank rank) const;
  Event now(Rank rank) const;
  Runner& runner(Rank rank) { return runners[static_cast<std::size_t>(rank)]; }
  const Runner& runner(Rank rank) const { return runners[static_cast<std::size_t>(rank)]; }
  Link& link(Rank from, Rank to);
  Memory& stage(Rank owner) { return stages[static_cast<std::size_t>(owner)]; }
  /// Nothing before the rank has begun the operation.
  std::optional<Buffers>& buffers(int operation, Rank rank);
  /// Where the counters stand when the operation begins.
  std::int64_t base(int operation) const { return bases[static_cast<std::size_t>(operation)]; }
  /// The first signal that satisfies a wait for this value: the only one that it can rely on.
  Announcement* announcement(Rank rank, std::int64_t value);

  /// A rank reads or writes a place; what is wrong with it is reported.
  Content load(const Place& place, const Access& by);
  void store(const Place& place, const Content& content, const Access& by);
  void report(const Site& site, std::string what);
  void report_race(const Place& place, const Access& by, const Access& other);

  std::span<const schedule::Schedule> schedules;
  std::vector<std::int64_t> bases;  // by operation, and one for what follows
  std::vector<Runner> runners;      // by rank
  std::vector<Memory> stages;       // by rank
  std::vector<std::vector<std::optional<Buffers>>> all_buffers;  // by operation and rank
  std::map<std::pair<Rank, Rank>, Link> links;
  Expressions expressions;
  std::vector<Violation> violations;

 private:
  struct Spot {
    Memory* memory;
    Range range;
  };
  std::optional<Spot> find(const Place& place, const Site& site);
};

}  // namespace peal::verify
