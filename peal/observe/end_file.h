// How a rank has ended, as a file beside its flight. The launcher writes the file as soon as a
// process has ended, so that peers that lost the rank can report how it ended. The native backend
// and the rendezvous read it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "peal/base/clock.h"
#include "peal/observe/rank_end.h"

namespace peal::observe {

/// Where the ends of one job's ranks are stored. Other jobs may use the folder at the same time;
/// files of other jobs are ignored.
struct EndPlace {
  std::string folder;  // empty: nowhere
  std::string job;

  bool is_any() const { return !folder.empty(); }
};

/// The content of an end file: a line with the job, and a line as in rank_end.h.
struct EndFile {
  std::string job;
  RankEnd end;
};
/// Errors: mismatch.
EndFile parse_end_file(std::string_view text);

/// Writes the file as a whole or not at all, readable by this user only. Creates the folder if only
/// the folder is missing, and replaces an earlier file.
/// Errors: resource.
void write_end_file(const EndPlace& place, const RankEnd& end);

/// Returns nothing if the file is missing, malformed, of another job or of another user. Links and
/// pipes count as missing.
/// Cost: an open().
std::optional<RankEnd> try_read_end_file(const EndPlace& place, Rank rank);

/// As try_read_end_file, for a rank that has just ended: waits for the file until the deadline.
std::optional<RankEnd> await_end_file(const EndPlace& place, Rank rank, Deadline deadline);

/// Removes the end files that earlier jobs of this user left in the folder, and nothing else.
void remove_end_files(const std::string& folder);
/// Removes the end file of the rank, if it is a file of this user.
void remove_end_file(const std::string& folder, Rank rank);

}  // namespace peal::observe
