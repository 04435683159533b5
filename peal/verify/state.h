// The state of ranks, memory and links while the run runs schedules on symbols. The run changes
// the state, and the checks of the outcome read it.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "peal/schedule/scratch.h"
#include "peal/verify/expression.h"
#include "peal/verify/memory.h"
#include "peal/verify/vector_clock.h"
#include "peal/verify/verify.h"

namespace peal::verify {

/// A rank's buffers in one operation.
struct Buffers {
  std::vector<Memory> memories;  // one if input and output share it, otherwise input and output
  Elements input_begin;
  Elements output_begin;
  Event begun;

  Memory& input() { return memories.front(); }
  Memory& output() { return memories.back(); }
};

/// A signal, and what the rank knew when it signalled.
struct Announcement {
  std::int64_t counter = 0;  // since the sequence began
  Site site;
  Event event;
  VectorClock clock;
};

struct Message {
  Elements position;
  Elements count;
  Site site;
  Content content;
  VectorClock clock;
};

/// The messages in flight from one rank to another.
struct Link {
  Event last_read;  // by the link's sender, of a message's source
  std::deque<Message> messages;
  std::map<int, Elements> sent;  // by operation
};

/// Where a rank is in the sequence.
struct Runner {
  VectorClock clock;
  std::int64_t time = 0;
  int operation = 0;
  int step = -1;                            // -1: the operation has not begun
  std::vector<Announcement> announcements;  // ascending
};

/// Where an operation stages on a host.
struct Staging {
  /// In the scratch that the group's operations share. Empty if the operation has no signals: then
  /// each rank has a stage of its own.
  std::optional<Elements> begin;
  std::int64_t free_at = 0;  // a rank with this counter, since the beginning, has left the place
  std::vector<Memory> own;   // by rank of the host, if the stage is not shared
};

/// The counters and the scratch that the ranks of one host share.
struct Host {
  schedule::Ranks ranks;
  std::vector<std::int64_t> bases;  // of the counters, by operation
  std::vector<Staging> stagings;    // by operation
};

/// A slice, on one of its ranks.
struct RankSlice {
  schedule::Space space{};
  Rank owner = 0;
  Elements offset;
  Elements count;
};

struct State {
  /// The state before the first operation. `check_well_formed` must have accepted the schedules.
  State(std::span<const schedule::Schedule> schedules, const schedule::ScratchSize& size);

  std::span<const schedule::Schedule> schedules;
  std::vector<Host> hosts;
  std::vector<Runner> runners;                               // by rank
  std::vector<std::vector<std::optional<Buffers>>> buffers;  // by operation and rank, once begun
  std::vector<Memory> scratch;                               // by rank
  std::map<std::pair<Rank, Rank>, Link> links;               // by sender and receiver
  Expressions expressions;
  std::vector<Violation> violations;

  int ranks() const { return static_cast<int>(runners.size()); }
  int operations() const { return static_cast<int>(schedules.size()); }
  const schedule::Problem& problem(int operation) const;
  const schedule::Part& part(int operation, Rank rank) const;
  Runner& runner(Rank rank) { return runners[static_cast<std::size_t>(rank)]; }
  const Runner& runner(Rank rank) const { return runners[static_cast<std::size_t>(rank)]; }
  const Host& host_of(Rank rank) const;
  /// The stage of the rank in an operation, and where in that memory it begins: in the shared
  /// scratch, or in a memory of the rank if the ranks of its host share none.
  std::pair<Memory*, Elements> stage_of(Rank rank, int operation);
  /// Empty until the rank begins the operation.
  std::optional<Buffers>& buffers_of(Rank rank, int operation);
  Link& link(Rank from, Rank to);

  /// The step that the rank is at. At the end of its operation, that is the number of steps.
  Site site(Rank rank) const;
  Event now(Rank rank) const { return {rank, runner(rank).time}; }
  /// The counter on the rank's host that a signal or wait of the operation means. The value 0 means
  /// the signals that make the operation's staging place free.
  std::int64_t counter(Rank rank, int operation, std::int64_t value) const;
  /// The first signal that brings the counter there, the only one that a wait can rely on.
  const Announcement* announcement(Rank rank, std::int64_t counter) const;

  /// A rank reads or writes a place. Errors are reported.
  Content load(const RankSlice& place, const Access& by);
  void store(const RankSlice& place, const Content& content, const Access& by);
  void report(const Site& site, std::string what);
  void report_race(const RankSlice& place, const Access& by, const Access& other);
};

}  // namespace peal::verify
