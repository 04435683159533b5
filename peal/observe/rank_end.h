// How the process of a rank ended, or that it is stopped, as observed by its launcher: the one fact
// that the rank's record cannot contain. The launcher writes these lines and `peal why` reads them.
// For processes that have not ended, `peal why` makes them itself.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "peal/base/error.h"
#include "peal/base/units.h"
#include "peal/observe/flight.h"

namespace peal::observe {

struct RankEnd {
  enum class State : std::uint8_t {
    kRuns,
    kStopped,            // stopped by a signal, and not ended
    kEndedWhileStopped,  // by the launcher, while it was stopped by a signal
    kEndedWell,          // exit code 0
    kEndedBadly,         // another exit code, not caused by the launcher
    kKilled,             // by a signal that the launcher did not send
    kEndedByLauncher,    // the launcher ends all ranks after one has failed: never the cause
  };

  Rank rank = 0;  // in the world
  std::uint64_t pid = 0;
  WallTime at;
  State state = State::kRuns;
  std::string text;  // one line, the continuation of "its process ": "was killed by SIGKILL"

  friend bool operator==(const RankEnd&, const RankEnd&) = default;
};

inline constexpr std::array kAllRankStates = {RankEnd::State::kRuns,
                                              RankEnd::State::kStopped,
                                              RankEnd::State::kEndedWhileStopped,
                                              RankEnd::State::kEndedWell,
                                              RankEnd::State::kEndedBadly,
                                              RankEnd::State::kKilled,
                                              RankEnd::State::kEndedByLauncher};

/// "runs", "stopped", "ended_while_stopped", "ended_well", "ended_badly", "killed",
/// "ended_by_launcher"
std::string_view name_of(RankEnd::State state);

/// Whether the process has ended.
constexpr bool has_ended(RankEnd::State state) {
  return state != RankEnd::State::kRuns && state != RankEnd::State::kStopped;
}

/// Whether the process failed, and the launcher did not end it.
constexpr bool ended_badly(RankEnd::State state) {
  return state == RankEnd::State::kEndedBadly || state == RankEnd::State::kKilled;
}

/// The cause for an error that names the rank.
ErrorCause cause_of(RankEnd::State state);

/// "3 4711 1764000000123456789 killed was killed by SIGKILL": rank, process, nanoseconds since
/// 1970, state, text. Without a line end. The text is made printable (base/printable.h).
std::string to_line(const RankEnd& end);

/// The inverse of to_line. A line end may follow.
/// Errors: mismatch.
RankEnd parse_rank_end(std::string_view line);

}  // namespace peal::observe
