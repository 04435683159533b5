#include "peal/backends/native/lost_peer.h"

#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "peal/observe/end_file.h"

namespace peal::native {
namespace {

/// The launcher notices the end of a rank at the same time as its peers, and needs this time to
/// record it.
constexpr auto kEndIsWritten = std::chrono::milliseconds(100);

/// After an exception, a rank destroys its inner groups first. The group that reports the exception
/// follows later.
constexpr auto kOuterGroupReports = std::chrono::milliseconds(500);

ErrorCause cause_of(transport::Presence::State state) {
  using State = transport::Presence::State;
  switch (state) {
    case State::kStopped:
      return ErrorCause::kStopped;
    case State::kUnreachable:
    case State::kDamaged:
      return ErrorCause::kUnreachable;
    case State::kUnknown:
    case State::kRunning:
    case State::kSilent:
    case State::kEnded:
      return ErrorCause::kUnknown;
  }
  return ErrorCause::kUnknown;
}

}  // namespace

Error LostPeers::lost(Rank peer, const std::string& operation) const {
  const HowItEnded how = how_it_ended(peer);
  return Error(ErrorKind::kPeerLost,
               fmt::format("{} was lost: it {}; rank {} of the group {} was in {}",
                           name_of(peer),
                           how.text,
                           parts_.self,
                           parts_.group,
                           operation.empty() ? "no operation" : operation),
               details(peer, operation, how.cause));
}

Error LostPeers::damaged(Rank peer, const std::string& how, const std::string& operation) const {
  return Error(ErrorKind::kPeerLost,
               fmt::format("the link to {} is damaged: {}", name_of(peer), how),
               details(peer, operation, ErrorCause::kUnreachable));
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
                        parts_.group),
            {.operation = operation}));
}

std::string LostPeers::name_of(Rank peer) const {
  return fmt::format("rank {} ({})", peer, parts_.transport.describe(peer));
}

ErrorDetails LostPeers::details(Rank peer, const std::string& operation, ErrorCause cause) const {
  return {.rank = parts_.world_ranks[static_cast<std::size_t>(peer)],
          .host = parts_.transport.host(peer),
          .operation = operation,
          .cause = cause};
}

ErrorDetails LostPeers::details_of_missing(Rank peer, const std::string& operation) const {
  return details(peer, operation, cause_of(parts_.transport.presence(peer).state));
}

LostPeers::HowItEnded LostPeers::how_it_ended(Rank peer) const {
  using State = transport::Presence::State;
  if (parts_.ends.is_any()) {
    const Rank world_rank = parts_.world_ranks[static_cast<std::size_t>(peer)];
    const auto end =
        observe::await_end_file(parts_.ends, world_rank, Deadline::after(kEndIsWritten));
    if (end) return {end->text, observe::cause_of(end->state)};
  }
  const transport::Presence presence = parts_.transport.presence(peer);
  const bool is_specific = presence.state == State::kUnreachable ||
                           presence.state == State::kDamaged || presence.state == State::kEnded;
  if (is_specific) return {transport::describe(presence), cause_of(presence.state)};
  return {"ended, or its connection broke", ErrorCause::kUnknown};
}

/// A rank that throws leaves its inner groups before the outer group can report the exception.
Error LostPeers::with_what_it_threw(Rank peer, Departure departure, const Error& left) const {
  const bool has_thrown = departure == Departure::kByException;
  ErrorDetails why =
      details(peer, left.details().operation, has_thrown ? ErrorCause::kThrew : ErrorCause::kLeft);
  const Error known(left.kind(), std::string(left.message()), why);
  if (!has_thrown || !parts_.what_was_thrown) return known;
  const Rank world_rank = parts_.world_ranks[static_cast<std::size_t>(peer)];
  const Deadline deadline = Deadline::after(kOuterGroupReports);
  while (true) {
    if (const auto what = parts_.what_was_thrown(world_rank)) {
      why.reason = *what;
      return Error(left.kind(), fmt::format("{}; it threw: {}", left.message(), *what), why);
    }
    if (deadline.passed()) return known;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace peal::native
