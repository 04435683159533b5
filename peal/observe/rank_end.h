// How the process of a rank was seen to end, or to stand still, by who started it: the one thing
// that its own record cannot say. The launcher writes these, `peal why` reads them and makes those
// of processes that have not ended.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "peal/base/units.h"
#include "peal/observe/flight.h"

namespace peal::observe {

struct RankEnd {
  enum class Fate : std::uint8_t {
    kRuns,
    kStandsStill,      // stopped by a signal, until another one
    kStopped,          // the same, until the launcher ended it
    kEndedWell,        // exit code 0
    kEndedBadly,       // of itself, or by somebody unknown
    kEndedByLauncher,  // which ends all ranks when one has failed: never the cause
  };

  Rank rank = 0;  // in the world
  std::uint64_t pid = 0;
  WallTime at;
  Fate fate = Fate::kRuns;
  std::string text;  // one line that follows "its process ": "was killed by SIGKILL"

  friend bool operator==(const RankEnd&, const RankEnd&) = default;
};

inline constexpr std::array kAllFates = {RankEnd::Fate::kRuns,
                                         RankEnd::Fate::kStandsStill,
                                         RankEnd::Fate::kStopped,
                                         RankEnd::Fate::kEndedWell,
                                         RankEnd::Fate::kEndedBadly,
                                         RankEnd::Fate::kEndedByLauncher};

/// "runs", "stands_still", "stopped", "ended_well", "ended_badly", "ended_by_launcher"
std::string_view name_of(RankEnd::Fate fate);

/// Whether its process is no more.
constexpr bool has_ended(RankEnd::Fate fate) {
  return fate != RankEnd::Fate::kRuns && fate != RankEnd::Fate::kStandsStill;
}

/// "3 4711 1764000000123456789 ended_badly was killed by SIGKILL": rank, process, nanoseconds since
/// 1970, fate, text. Without an end of line; the text is printable (base/printable.h).
std::string to_line(const RankEnd& end);

/// The inverse; an end of line may follow. Errors: mismatch.
RankEnd parse_rank_end(std::string_view line);

}  // namespace peal::observe
