#include "peal/backends/native/stopped_peers.h"

#include <algorithm>

#include <fmt/format.h>

namespace peal::native {
namespace {

constexpr int kNamed = 8;

bool runs(const transport::Presence& presence) {
  using State = transport::Presence::State;
  return presence.state == State::kRunning || presence.state == State::kUnknown;
}

}  // namespace

std::string describe_stopped_peers(const transport::Transport& transport,
                                   Rank self,
                                   int ranks,
                                   std::span<const Rank> known) {
  std::string text;
  int named = 0;
  for (Rank rank = 0; rank < ranks && named < kNamed; ++rank) {
    if (rank == self || std::ranges::find(known, rank) != known.end()) continue;
    const transport::Presence presence = transport.presence(rank);
    if (runs(presence)) continue;
    text += fmt::format("{} rank {} ({}) {}",
                        named++ == 0 ? ". Meanwhile" : ";",
                        rank,
                        transport.describe(rank),
                        describe(presence));
  }
  return text;
}

}  // namespace peal::native
