// What a rank knows about operations that wait for other ranks, and the texts about them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/units.h"

namespace peal::named {

/// What a rank reports about itself.
struct Standing {
  std::uint64_t has = 0;  // bit i: the rank has submitted the i-th name of the question
  enum class Join : std::uint8_t { kNotJoined, kJoined } join = Join::kNotJoined;
  /// Where its program is. Nothing if the rank has not sent it in time.
  std::optional<std::string> place = std::nullopt;
};

/// Names of operations, the longest waiting first, and how long the first has waited.
struct Stalled {
  std::vector<std::string> names;
  Duration waited{};
};

/// The ranks of a group, as a rank knows them.
struct StandingsOfRanks {
  /// By rank; nothing for a rank that did not answer, and for this rank.
  std::vector<std::optional<Standing>> standings;
  Rank self = 0;
  std::vector<Rank> global_ranks;
  Timeout answers_within = std::chrono::seconds(3);  // how long this rank has waited for them
};

/// The names that the rank has not submitted.
std::vector<std::string> missing_names(const Stalled& stalled, const Standing& standing);

/// The ranks that have not submitted all the names, a line for each, and where their programs are.
/// Empty if no rank is missing. Ranks that have joined do not count as missing.
std::string missing_ranks(const Stalled& stalled, const StandingsOfRanks& ranks);

/// The text of a report. Empty if no rank is missing, or if a lower rank reports the same.
std::string stall_report(const Stalled& stalled, const StandingsOfRanks& ranks, Timeout warning);

/// The error with which the stall ends the group. Empty if no rank is missing.
std::string stall_end(const Stalled& stalled, const StandingsOfRanks& ranks, Timeout limit);

}  // namespace peal::named
