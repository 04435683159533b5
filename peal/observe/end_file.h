// How a rank has ended, as a file beside its flight: whoever has started the ranks leaves it as
// soon as a process has ended, so that peers that have lost it can say more than that. The launcher
// writes them; the native backend and the rendezvous look whether there is one.
#pragma once

#include <optional>
#include <string>

#include "peal/base/clock.h"
#include "peal/observe/rank_end.h"

namespace peal::observe {

/// Into the folder, which is made if only that is missing; there as a whole or not at all, for this
/// user alone. It replaces a former one. Errors: resource.
void write_end_file(const std::string& folder, const RankEnd& end);

/// Nothing where the folder has no such file, or one that says nothing. Cost: an open().
std::optional<RankEnd> try_read_end_file(const std::string& folder, Rank rank);

/// The same for who has just ended: waits until the deadline for the file, as long as there is none
/// of an end since `earliest`. Of an earlier job there may be one.
std::optional<RankEnd> await_end_file(const std::string& folder,
                                      Rank rank,
                                      WallTime earliest,
                                      Deadline deadline);

/// Removes those that former jobs of this user have left in the folder, and nothing else.
void remove_end_files(const std::string& folder);

}  // namespace peal::observe
