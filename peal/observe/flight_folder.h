// The names of the files with a job's flights. Ranks write the flights, the launcher adds how the
// ranks ended, and `peal why` reads both.
#pragma once

#include <string>
#include <string_view>

#include "peal/base/units.h"

namespace peal::observe {

inline constexpr std::string_view kFlightSuffix = ".flight";
inline constexpr std::string_view kEndSuffix = ".end";
inline constexpr std::string_view kRankPrefix = "rank-";

inline constexpr std::string_view kRoundPrefix = "round-";

/// "FOLDER/round-2": the folder with the files of one round of an elastic job.
inline std::string round_folder_in(const std::string& folder, int round) {
  return folder + "/" + std::string(kRoundPrefix) + std::to_string(round);
}

/// "FOLDER/rank-3.flight". `rank` is a rank in the world.
inline std::string flight_file_in(const std::string& folder, Rank rank) {
  return folder + "/" + std::string(kRankPrefix) + std::to_string(rank) +
         std::string(kFlightSuffix);
}

/// "FOLDER/rank-3.end": one line (rank_end.h).
inline std::string end_file_in(const std::string& folder, Rank rank) {
  return folder + "/" + std::string(kRankPrefix) + std::to_string(rank) + std::string(kEndSuffix);
}

}  // namespace peal::observe
