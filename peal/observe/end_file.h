// How a rank has ended, as a file beside its flight: whoever has started the ranks leaves it as
// soon as a process has ended, so that peers that have lost it can say more than that. The launcher
// writes them; the native backend and the rendezvous look whether there is one.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "peal/base/clock.h"
#include "peal/observe/rank_end.h"

namespace peal::observe {

/// Where the ends of one job's ranks are noted. Other jobs may use the folder at the same time, and
/// theirs count for nobody here.
struct EndPlace {
  std::string folder;  // empty: nowhere
  std::string job;

  bool is_any() const { return !folder.empty(); }
};

/// What such a file says: a line with the job, and one as rank_end.h has it.
struct EndFile {
  std::string job;
  RankEnd end;
};
/// Errors: mismatch.
EndFile parse_end_file(std::string_view text);

/// Into the folder, which is made if only that is missing; there as a whole or not at all, for this
/// user alone. It replaces a former one. Errors: resource.
void write_end_file(const EndPlace& place, const RankEnd& end);

/// Nothing where there is no such file, or one of another job or user, or one that says nothing.
/// Links and pipes count as nothing. Cost: an open().
std::optional<RankEnd> try_read_end_file(const EndPlace& place, Rank rank);

/// The same for who has just ended: waits for the file until the deadline.
std::optional<RankEnd> await_end_file(const EndPlace& place, Rank rank, Deadline deadline);

/// Removes those that former jobs of this user have left in the folder, and nothing else.
void remove_end_files(const std::string& folder);

}  // namespace peal::observe
