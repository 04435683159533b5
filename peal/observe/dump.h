// What is known of a job that has ended, or that stands still, in one file: the flights of its
// ranks and how their processes ended. The launcher writes it, `peal why` reads it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "peal/observe/flight.h"
#include "peal/observe/rank_end.h"

namespace peal::observe {

/// Of each rank the last flight and the last end, by rank.
struct Dump {
  std::vector<Flight> flights;
  std::vector<RankEnd> ends;
  /// What could not be read, and why; one line each.
  std::vector<std::string> skipped;
};

/// The bytes of a dump, of those of flight files.
std::string to_dump(std::span<const std::string> flights, std::span<const RankEnd> ends);

/// What the bytes say. A flight or end inside that is malformed is skipped.
/// Errors: mismatch, if they are no dump.
Dump parse_dump(std::string_view bytes);

/// The file is there as a whole or not at all, for this user alone; it replaces a former one.
/// Errors: resource.
void write_dump(const std::string& path,
                std::span<const std::string> flights,
                std::span<const RankEnd> ends);

/// All that the paths lead to, each one a dump, the flight of a rank, or a folder in which there
/// are flights and ends (flight_folder.h). Files in a folder that cannot be read are skipped, as
/// are those of other users, links and pipes. Memory: bounded by a multiple of the bytes that are
/// read. Errors: usage (a path that leads to nothing that can be read), mismatch (or to something
/// else).
Dump read_dumps(std::span<const std::string> paths);

}  // namespace peal::observe
