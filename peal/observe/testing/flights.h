// A builder of flights for tests.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "peal/observe/flight.h"
#include "peal/observe/rank_end.h"

namespace peal::observe {

/// `milliseconds` after the job began.
inline WallTime at_ms(int milliseconds) {
  return WallTime(std::chrono::hours(12) + std::chrono::milliseconds(milliseconds));
}

/// The flight of a rank of a job, in the group world and optionally in a group called pair.
class FlightOf final {
 public:
  explicit FlightOf(Rank rank, int world_size, std::string host = "a") {
    flight_.rank = rank;
    flight_.world_size = world_size;
    flight_.pid = 100 + static_cast<std::uint64_t>(rank);
    flight_.host = std::move(host);
    flight_.begun = flight_.last_seen = at_ms(0);
    FlightGroup world{.name = "world", .size = static_cast<std::size_t>(world_size), .ranks = {}};
    for (Rank r = 0; r < world_size; ++r) world.ranks.push_back(r);
    flight_.groups = {world};
  }
  FlightOf& with_pair(std::vector<Rank> ranks) {
    const std::size_t size = ranks.size();
    flight_.groups.push_back({.name = "pair", .size = size, .ranks = std::move(ranks)});
    return *this;
  }

  /// Adds the next collective of the group, from `start` to `end` in ms. `end` 0: under way.
  FlightOf& did(Operation operation, int start, int end, std::uint8_t group = 0, int count = 10) {
    FlightOperation& added = flight_.operations.emplace_back();
    added.ordinal = flight_.operations.size();
    added.kind = {.group = group, .operation = operation, .dtype = DType::kF32};
    added.sequence = ++sequences_[group];
    added.count = Elements(count);
    added.start = at_ms(start);
    if (end != 0) added.end = at_ms(end);
    return *this;
  }
  /// Adds a collective that failed at `at` with this error.
  FlightOf& failed_in(
      Operation operation, int start, int at, ErrorKind kind, std::string text = "") {
    did(operation, start, at);
    flight_.operations.back().failed = true;
    return failed(at, kind, std::move(text));
  }
  /// Adds an error between two operations.
  FlightOf& failed(int at, ErrorKind kind, std::string text) {
    flight_.first_error =
        FlightError{.kind = kind, .text = std::move(text), .group = 0, .at = at_ms(at)};
    return *this;
  }
  /// Makes the first error name `rank`.
  FlightOf& because_of(Rank rank, ErrorCause cause, std::string reason = "") {
    flight_.first_error->rank = rank;
    flight_.first_error->cause = cause;
    flight_.first_error->reason = std::move(reason);
    return *this;
  }
  FlightOf& is_in_message(Operation operation, Rank peer, int start) {
    did(operation, start, 0, 7);
    flight_.operations.back().kind.group = 0;
    flight_.operations.back().kind.root = peer;
    flight_.operations.back().sequence = 3;  // its tag
    return *this;
  }
  /// Adds an operation by name of the group world. `end` 0: in flight.
  FlightOf& submitted(std::string name, int start, int end = 0) {
    FlightName& added = flight_.names.emplace_back();
    added.ordinal = flight_.names.size();
    added.text = std::move(name);
    added.submitted = at_ms(start);
    if (end != 0) added.end = at_ms(end);
    return *this;
  }
  FlightOf& waited(int milliseconds, Rank rank) {
    flight_.operations.back().waited = std::chrono::milliseconds(milliseconds);
    flight_.operations.back().waited_for = rank;
    return *this;
  }
  FlightOf& left(Departure how, int at) {
    flight_.departure = FlightDeparture{.how = how, .at = at_ms(at)};
    return *this;
  }

  operator Flight() const { return flight_; }  // NOLINT(google-explicit-constructor): a builder

 private:
  Flight flight_;
  std::uint64_t sequences_[8] = {};
};

inline RankEnd end_of(Rank rank, RankEnd::State state, int at, std::string text) {
  return {.rank = rank,
          .pid = 100 + static_cast<std::uint64_t>(rank),
          .at = at_ms(at),
          .state = state,
          .text = std::move(text)};
}

}  // namespace peal::observe
