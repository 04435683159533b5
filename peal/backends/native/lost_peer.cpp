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

/// An exception that ends a group goes on through what else it destroys to whoever catches it.
constexpr auto kAncestorIsTold = std::chrono::milliseconds(500);

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
  return with_what_it_threw(
      peer,
      departure,
      Error(ErrorKind::kPeerLost,
            fmt::format("{} {} and is missing in {}, on rank {} of the group {}",
                        name_of(peer),
                        describe(departure),
                        operation,
                        parts_.self,
                        parts_.group)));
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
Error LostPeers::with_what_it_threw(Rank peer, Departure departure, const Error& left) const {
  if (departure != Departure::kByException || !parts_.what_was_thrown) return left;
  const Rank world_rank = parts_.world_ranks[static_cast<std::size_t>(peer)];
  const Deadline deadline = Deadline::after(kAncestorIsTold);
  while (true) {
    if (const auto what = parts_.what_was_thrown(world_rank)) {
      return Error(left.kind(), fmt::format("{}; it threw: {}", left.message(), *what));
    }
    if (deadline.passed()) return left;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace peal::native
