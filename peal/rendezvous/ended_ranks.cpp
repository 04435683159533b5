#include "peal/rendezvous/ended_ranks.h"

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/observe/end_file.h"
#include "peal/rendezvous/roll_call.h"

namespace peal::rendezvous {
namespace {

constexpr std::string_view kEndedPrefix = "ended/";

}  // namespace

void set_end_will(store::Store& store, Rank rank, const std::string& process) {
  store.set_will(key_of_rank(kEndedPrefix, rank), process);
}

void check_ends(store::Store& store, std::span<const Rank> ranks, std::string_view what) {
  const auto processes = store.try_get_all(keys_of_ranks(kEndedPrefix, ranks));
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const auto& process = processes.at(i);
    if (!process) continue;
    const Rank rank = ranks[i];
    throw Error(
        ErrorKind::kPeerLost,
        fmt::format("rank {} ({}) ended, or left all groups, before it {}", rank, *process, what),
        {.rank = rank});
  }
}

void EndedRanks::check(std::span<const Rank> ranks, std::string_view what) const {
  if (!place_.is_any()) return;
  for (const Rank rank : ranks) {
    const auto end = observe::try_read_end_file(place_, rank);
    if (!end || !observe::has_ended(end->state)) continue;
    throw Error(ErrorKind::kPeerLost,
                fmt::format("rank {} (pid {}) {} before it {}", rank, end->pid, end->text, what),
                {.rank = rank, .cause = observe::cause_of(end->state)});
  }
}

}  // namespace peal::rendezvous
