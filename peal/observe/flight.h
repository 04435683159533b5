// What is known of one rank's last operations, as a value: what the parser (flight_file.h) makes of
// the recorder's bytes, and `why.h` reasons about.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "peal/base/departure.h"
#include "peal/base/error.h"
#include "peal/base/units.h"
#include "peal/observe/flight_layout.h"

namespace peal::observe {

/// A time of day, by the clock of the rank's host.
using WallTime = std::chrono::sys_time<std::chrono::nanoseconds>;

/// A group that the rank was in; operations name it by its place in Flight::groups.
struct FlightGroup {
  std::string name;
  std::size_t size = 0;
  std::vector<Rank> ranks;  // in the world; fewer than `size` if the record had no room for all

  friend bool operator==(const FlightGroup&, const FlightGroup&) = default;
};

struct FlightOperation {
  std::uint64_t ordinal = 0;  // 1 for the rank's first of all
  OperationKind kind;
  std::uint64_t sequence = 0;  // of a collective in its group; the tag of a message
  Elements count;
  WallTime start;
  std::optional<WallTime> past_waiting;  // nothing: it was still waiting for its peers
  std::optional<WallTime> end;           // nothing: it was under way
  bool failed = false;
  std::chrono::nanoseconds waited{0};  // for peers, beyond spinning; without a wait that goes on
  std::optional<Rank> waited_for;      // the last one, in the world

  bool is_under_way() const { return !end; }
  /// It has not ended well: is under way, or has failed.
  bool is_unfinished() const { return !end || failed; }

  friend bool operator==(const FlightOperation&, const FlightOperation&) = default;
};

/// The first thing that the rank knew to have gone wrong.
struct FlightVerdict {
  ErrorKind kind = ErrorKind::kBug;
  std::string text;
  std::uint8_t group = 0;
  WallTime at;

  friend bool operator==(const FlightVerdict&, const FlightVerdict&) = default;
};

struct FlightDeparture {
  Departure how = Departure::kInOrder;
  WallTime at;

  friend bool operator==(const FlightDeparture&, const FlightDeparture&) = default;
};

/// More than any job has: what is read beyond it is no record.
inline constexpr int kMostRanks = 1 << 23;

struct Flight {
  Rank rank = 0;
  int world_size = 1;
  std::uint64_t pid = 0;
  std::string host;
  std::string job;
  WallTime begun;
  WallTime last_seen;  // when the rank last looked at the clock: it was alive then
  std::vector<std::string> algorithms;
  std::vector<FlightGroup> groups;
  std::vector<FlightOperation> operations;  // in the order in which they began
  std::size_t torn = 0;                     // entries that were half written
  std::optional<FlightVerdict> verdict;
  std::optional<FlightDeparture> departure;

  friend bool operator==(const Flight&, const Flight&) = default;
};

/// The group of one of its operations; null where the record had no room for its name.
inline const FlightGroup* group_of(const Flight& flight, const FlightOperation& operation) {
  const std::size_t number = operation.kind.group;
  return number < flight.groups.size() ? &flight.groups[number] : nullptr;
}

}  // namespace peal::observe
