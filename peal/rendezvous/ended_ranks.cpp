#include "peal/rendezvous/ended_ranks.h"

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/observe/end_file.h"
#include "peal/rendezvous/roll_call.h"

namespace peal::rendezvous {
namespace {

constexpr std::string_view kEndedPrefix = "ended/";

}  // namespace

void will_end(store::Store& store, Rank rank, const std::string& who) {
  store.set_will(key_of_rank(kEndedPrefix, rank), who);
}

void check_ends(store::Store& store, std::span<const Rank> ranks, std::string_view what) {
  for (const Rank rank : ranks) {
    const auto who = store.try_get(key_of_rank(kEndedPrefix, rank));
    if (!who) continue;
    throw Error(
        ErrorKind::kPeerLost,
        fmt::format("rank {} ({}) ended, or left all groups, before it {}", rank, *who, what));
  }
}

void EndedRanks::check(std::span<const Rank> ranks, std::string_view what) const {
  if (!place_.is_any()) return;
  for (const Rank rank : ranks) {
    const auto end = observe::try_read_end_file(place_, rank);
    if (!end || !observe::has_ended(end->fate)) continue;
    throw Error(ErrorKind::kPeerLost,
                fmt::format("rank {} (pid {}) {} before it {}", rank, end->pid, end->text, what));
  }
}

}  // namespace peal::rendezvous
