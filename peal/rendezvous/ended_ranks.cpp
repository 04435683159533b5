#include "peal/rendezvous/ended_ranks.h"

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/observe/end_file.h"

namespace peal::rendezvous {

void EndedRanks::check(std::span<const Rank> ranks, std::string_view what) const {
  if (folder_.empty()) return;
  for (const Rank rank : ranks) {
    const auto end = observe::try_read_end_file(folder_, rank);
    if (!end || end->fate == observe::RankEnd::Fate::kRuns) continue;
    throw Error(ErrorKind::kPeerLost,
                fmt::format("rank {} (pid {}) {} before it {}", rank, end->pid, end->text, what));
  }
}

}  // namespace peal::rendezvous
