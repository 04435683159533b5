#include "peal/backends/native/lost_peer.h"

#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "peal/observe/end_file.h"

namespace peal::native {
namespace {

/// Whoever started the ranks hears of an end when the peers do, and then has to write it down.
constexpr auto kEndIsWritten = std::chrono::milliseconds(100);

/// An exception that ends a group of a part of the ranks goes on to that of all within moments.
constexpr auto kParentIsTold = std::chrono::milliseconds(100);

}  // namespace

Error LostPeers::lost(Rank peer, const std::string& operation) const {
  return Error(ErrorKind::kPeerLost,
               fmt::format("{} was lost: it {}; rank {} of the group {} was in {}",
                           name_of(peer),
                           how_it_ended(peer),
                           parts_.self,
                           parts_.group,
                           operation.empty() ? "no operation" : operation));
}

Error LostPeers::left(Rank peer, Departure departure, const std::string& operation) const {
  std::string how(describe(departure));
  if (departure == Departure::kByException) {
    if (const auto what = what_it_threw(peer)) how += fmt::format(" ({})", *what);
  }
  return Error(ErrorKind::kPeerLost,
               fmt::format("{} {} and is missing in {}, on rank {} of the group {}",
                           name_of(peer),
                           how,
                           operation,
                           parts_.self,
                           parts_.group));
}

std::string LostPeers::name_of(Rank peer) const {
  return fmt::format("rank {} ({})", peer, parts_.transport.describe(peer));
}

std::string LostPeers::how_it_ended(Rank peer) const {
  using State = transport::Presence::State;
  if (parts_.ends.is_any()) {
    const Rank world_rank = parts_.world_ranks[static_cast<std::size_t>(peer)];
    const auto end =
        observe::await_end_file(parts_.ends, world_rank, Deadline::after(kEndIsWritten));
    if (end) return end->text;
  }
  const transport::Presence presence = parts_.transport.presence(peer);
  const bool is_told = presence.state == State::kUnreachable || presence.state == State::kDamaged ||
                       presence.state == State::kEnded;
  if (is_told) return transport::describe(presence);
  return "ended, or its connection broke";
}

/// An exception leaves the groups that it destroys before the one that catches it can tell.
std::optional<std::string> LostPeers::what_it_threw(Rank peer) const {
  if (!parts_.end_of_parent) return std::nullopt;
  const std::string told = threw(parts_.world_ranks[static_cast<std::size_t>(peer)]);
  const Deadline deadline = Deadline::after(kParentIsTold);
  while (true) {
    if (const auto end = parts_.end_of_parent(); end && end->message().starts_with(told)) {
      return std::string(end->message().substr(told.size()));
    }
    if (deadline.passed()) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace peal::native
