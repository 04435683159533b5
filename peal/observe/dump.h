// All that is known of a job that has ended or hangs, in one file: the flights of its ranks, and
// how their processes ended. The launcher writes a dump, and `peal why` reads it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "peal/observe/flight.h"
#include "peal/observe/rank_end.h"

namespace peal::observe {

/// The last flight and the last end of each rank, sorted by rank.
struct Dump {
  std::vector<Flight> flights;
  std::vector<RankEnd> ends;
  /// The files and parts that could not be read, one line each, with the reason.
  std::vector<std::string> skipped;
};

/// The bytes of a dump. `flights` are the bytes of flight files.
std::string to_dump(std::span<const std::string> flights, std::span<const RankEnd> ends);

/// Parses a dump. Skips a flight or an end inside that is malformed.
/// Errors: mismatch, if the bytes are not a dump.
Dump parse_dump(std::string_view bytes);

/// Writes the file as a whole or not at all, readable by this user only. Replaces an earlier file.
/// Errors: resource.
void write_dump(const std::string& path,
                std::span<const std::string> flights,
                std::span<const RankEnd> ends);

/// Reads every path: a dump, the flight of a rank, or a folder with flights and ends
/// (flight_folder.h). In a folder, skips files that cannot be read, files of other users, links and
/// pipes.
/// Errors: usage (a path that cannot be read), mismatch (a file of another kind).
/// Cost: memory bounded by a multiple of the bytes that are read.
Dump read_dumps(std::span<const std::string> paths);

}  // namespace peal::observe
