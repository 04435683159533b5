// The last operations of one rank, as a value. The parser (flight_file.h) makes it from the
// recorder's bytes, and `why.h` reasons about it.
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

inline WallTime wall_now() {
  return std::chrono::time_point_cast<WallTime::duration>(std::chrono::system_clock::now());
}

/// A group that the rank was in. Operations refer to it by its index in Flight::groups.
struct FlightGroup {
  std::string name;
  std::size_t size = 0;
  std::vector<Rank> ranks;  // in the world; fewer than `size` if the record had no room for all
  /// kBackground: no thread of the program waits in its operations.
  enum class Use : std::uint8_t { kProgram, kBackground } use = Use::kProgram;

  friend bool operator==(const FlightGroup&, const FlightGroup&) = default;
};

struct FlightOperation {
  std::uint64_t ordinal = 0;  // counts the rank's operations, from 1
  OperationKind kind;
  std::uint64_t sequence = 0;  // of a collective in its group; the tag of a message
  Elements count;
  WallTime start;
  std::optional<WallTime> past_waiting;  // nothing: it was still waiting for its peers
  std::optional<WallTime> end;           // nothing: it was under way
  bool failed = false;
  std::chrono::nanoseconds waited{0};  // for peers, without spinning and without a current wait
  std::optional<Rank> waited_for;      // the last peer that it waited for, in the world

  bool is_under_way() const { return !end; }
  /// Under way, or failed.
  bool is_unfinished() const { return !end || failed; }

  friend bool operator==(const FlightOperation&, const FlightOperation&) = default;
};

/// An operation by name, which consists of several operations of its group.
struct FlightName {
  std::uint64_t ordinal = 0;  // counts the rank's operations by name, from 1
  std::uint8_t group = 0;
  std::string text;  // `allreduce "x"`
  WallTime submitted;
  std::optional<WallTime> started;  // nothing: it waited for other ranks to submit it
  std::optional<WallTime> end;      // nothing: it was in flight
  bool failed = false;

  /// In flight, or failed.
  bool is_unfinished() const { return !end || failed; }

  friend bool operator==(const FlightName&, const FlightName&) = default;
};

/// The first error that the rank knew of.
struct FlightError {
  ErrorKind kind = ErrorKind::kBug;
  std::string text;
  std::optional<Rank> rank = {};  // this and the next two fields are as in ErrorDetails
  ErrorCause cause = ErrorCause::kUnknown;
  std::string reason = {};
  std::uint8_t group = 0;
  WallTime at;

  friend bool operator==(const FlightError&, const FlightError&) = default;
};

struct FlightDeparture {
  Departure how = Departure::kNormal;
  WallTime at;

  friend bool operator==(const FlightDeparture&, const FlightDeparture&) = default;
};

/// More ranks than any job has. A record with more is rejected as malformed.
inline constexpr int kMostRanks = 1 << 23;

struct Flight {
  Rank rank = 0;
  int world_size = 1;
  std::uint64_t pid = 0;
  std::string host;
  std::string job;
  WallTime begun;
  WallTime last_seen;  // when the rank last read the clock, and so was alive
  std::vector<std::string> algorithms;
  std::vector<FlightGroup> groups;
  std::vector<FlightOperation> operations;  // in the order in which they began
  std::vector<FlightName> names;            // in the order in which they were submitted
  std::size_t torn = 0;                     // entries that were half written
  std::optional<FlightError> first_error;
  std::optional<FlightDeparture> departure;

  friend bool operator==(const Flight&, const Flight&) = default;
};

/// The group of an operation; null if the record had no room for the group.
inline const FlightGroup* group_of(const Flight& flight, const FlightOperation& operation) {
  const std::size_t number = operation.kind.group;
  return number < flight.groups.size() ? &flight.groups[number] : nullptr;
}

}  // namespace peal::observe
